"""The first tutorial says what is true: its commands run as they stand there, and print what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "first-answers.md").read_text()


def test_its_commands_run_and_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From nothing to the page, whose first sentence is the tutorial's last block."""
    monkeypatch.chdir(tmp_path)
    commands = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 7
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "fabrictune"
        assert run(words) == 0, command
    said = capsys.readouterr().out + (tmp_path / "page.html").read_text()
    shown = [line for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert len(shown) == 3
    assert [line for line in shown if line not in said] == []
    assert {path.name for path in (tmp_path / "plan").iterdir()} >= {"planned.yaml", "placement.csv"}
