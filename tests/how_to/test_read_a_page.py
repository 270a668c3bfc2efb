"""The page on pages says what is true: its commands make a page with the answer that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "read-a-page.md").read_text()


def test_its_commands_make_a_page_with_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also each control that it names is there."""
    (tmp_path / "scenarios").symlink_to(ROOT / "fabrictune" / "scenarios")
    monkeypatch.chdir(tmp_path)
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.M)
    for command in commands.splitlines():
        assert run([*shlex.split(command)[1:], "--json"]) == 0
    html = (tmp_path / "runs" / "flap" / "report.html").read_text()
    (answer,) = re.findall(r"^   > (.*)$", PAGE, re.M)
    assert f'<div class="answer">\n<p>{answer}</p>' in html
    for said in ("Show all times", 'class="fault-span"', 'class="fault"', "Provenance"):
        assert said in html
