"""The page on diagnostics says what is true: its command prints every line that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "diagnose-nodes.md").read_text()
COMMAND, SCREEN = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_command_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Each line word for word, in order; an ellipsis stands for others."""
    program, *words = shlex.split(COMMAND)
    assert program == "fabrictune"
    assert run(words) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in SCREEN.splitlines():
        assert line == "..." or line in printed, line
