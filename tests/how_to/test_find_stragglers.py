"""The page on stragglers says what is true: its commands print every line that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from benchmarks.studies.planted_stragglers.jobs import Disturbance, JobSize, simulate
from fabrictune.cli.main import run
from tests.observability.span_folders import slow_job, write_spans

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "find-stragglers.md").read_text()
STRAGGLERS, SCREEN, DECAY = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_commands_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line word for word, in order; an ellipsis stands for others."""
    monkeypatch.chdir(tmp_path)
    write_spans(slow_job(), Path("job"))
    assert run(shlex.split(STRAGGLERS)[1:]) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in SCREEN.splitlines():
        assert line == "..." or line in printed, line


def test_its_other_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    size = JobSize(dp=3, pp=1, num_batches=1, num_steps=12)
    write_spans(simulate(size, Disturbance.none(size), 0), Path("job"))
    assert run(shlex.split(DECAY)[1:]) == 0
    assert "within the scatter of steps" in capsys.readouterr().out
