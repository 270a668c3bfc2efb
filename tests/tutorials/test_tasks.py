"""The list of tasks: three kinds of user, four tasks each, and a test that works by the page it names."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"
PAGE = (FOLDER / "README.md").read_text()
ROWS = re.findall(r"^\| ([\w, ]+) \| (.+?) \| \[.+?\]\((.+?)\) \| `(.+?)` \|$", PAGE, re.M)


def test_three_kinds_of_user_have_four_tasks_each() -> None:
    """Twelve, none of them twice."""
    assert sorted(Counter(who for who, *_ in ROWS).values()) == [4, 4, 4]
    assert len({task for _, task, *_ in ROWS}) == 12


def test_each_task_has_a_test_that_reads_its_page() -> None:
    """The test takes its commands from the page, so that the page alone is enough."""
    for *_, page, test in ROWS:
        text = (ROOT / test).read_text()
        assert (FOLDER / page).resolve().name in text
        assert "def test_" in text


def test_the_five_tutorials_are_pages_with_such_a_test() -> None:
    """Each is the page of a task."""
    tutorials = re.findall(r"^\d\. \[.+?\]\((.+?)\)", PAGE, re.M)
    assert len(tutorials) == 5
    assert set(tutorials) <= {page for *_, page, _ in ROWS}
