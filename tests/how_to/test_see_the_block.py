"""The page on blocks says what is true: its command prints what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from tests.fabrictune.studies.test_job_block import write_job

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "see-the-block.md").read_text()
COMMAND, SCREEN = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_command_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A made-up job of eight ranks, in which three are in trouble."""
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path / "runs" / "job")
    assert run(shlex.split(COMMAND)[1:]) == 0
    assert capsys.readouterr().out == SCREEN
