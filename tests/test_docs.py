"""The pages that everybody edits keep their form: the glossary, the index of decisions, the changelog."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs" / "decisions"


def glossary_rows() -> list[list[str]]:
    """Return the cells of each row of the glossary."""
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines if line.startswith("|")][2:]


def test_the_glossary_is_sorted_and_names_no_word_twice() -> None:
    """A word is found where the alphabet has it, whatever its capitals."""
    words = [row[0].casefold() for row in glossary_rows()]
    assert words == sorted(set(words))


def test_a_row_of_the_glossary_is_a_word_its_meaning_and_its_neighbour() -> None:
    """Three cells; the third may be empty."""
    rows = glossary_rows()
    assert [row for row in rows if len(row) != 3 or not row[0] or not row[1]] == []


def test_every_decision_is_listed_by_its_number_and_title() -> None:
    """In order, with each number up to the last: a missing one is said to be unused."""
    listed = re.findall(
        r"^- (?:\[(\d{4})\]\((.*?)\) (.*)|(\d{4}) not used)$", (DECISIONS / "README.md").read_text(), re.M
    )
    titles = {path.name: path.read_text().splitlines()[0] for path in DECISIONS.glob("[0-9]*.md")}
    assert {name: re.sub(r"^# \d+[.:]? ", "", title) for name, title in titles.items()} == {
        name: title for _, name, title, _ in listed if name
    }
    assert [int(number or unused) for number, _, _, unused in listed] == list(range(1, len(listed) + 1))
    assert all(name.startswith(number) for number, name, _, _ in listed)


def test_the_changelog_is_grouped_and_has_a_line_for_a_change() -> None:
    """Keep a Changelog's groups, each once a version; no entry goes over its line."""
    _, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    for version in versions:
        _, *lines = version.splitlines()
        groups = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
        order = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
        assert groups == [name for name in order if name in groups]
        assert [line for line in lines if line and not line.startswith(("### ", "#### ", "- "))] == []
        assert [line for line in lines if len(line) > 120] == []


def test_links_lead_somewhere() -> None:
    """From every page, to a file of this repository."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())]
    own = [(page, link) for page, link in links if "://" not in link]
    assert len(own) > 50
    assert [f"{page.name}: {link}" for page, link in own if not (page.parent / link).exists()] == []


def test_what_the_recipes_name_exists() -> None:
    """Every path of CONTRIBUTING.md that is not one to be written, as those in `build` are by tests and `make site`."""
    paths = re.findall(r"`((?:\w+/)+[\w.]*)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(paths) > 15
    there = [path for path in paths if "NAME" not in path and not path.startswith("build/")]
    assert [path for path in there if not (ROOT / path).exists()] == []
