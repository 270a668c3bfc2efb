"""The page on effective time says what is true: its command prints every line that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.trainer_probe.operation.journal import open_journal
from tests.trainer_probe.survival.journals import ONE_FAULT

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "read-effective-time.md").read_text()
COMMAND, SCREEN = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_command_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line word for word, in order; an ellipsis stands for others."""
    monkeypatch.chdir(tmp_path)
    journal = open_journal("job")
    for elapsed_s, kind, values in ONE_FAULT:
        journal.append(kind, values, elapsed_s=elapsed_s)
    journal.close()
    program, *words = shlex.split(COMMAND)
    assert program == "fabrictune"
    assert run(words) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in SCREEN.splitlines():
        assert line == "..." or line in printed, line
