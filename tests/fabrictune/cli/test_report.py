"""`report build` beside what training runs write."""

import json
from pathlib import Path

import pytest

from benchmarks.studies.planted_stragglers.files import write_files
from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from tests.observability.span_folders import slow_job


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """The folders that a shell's runs/* gives: a record, and the spans beside it."""
    RunRecord(kind="train run", run={"name": "tiny"}).write(tmp_path / "tiny")
    write_files(slow_job(), tmp_path / "tiny-spans")
    return [str(tmp_path / "tiny"), str(tmp_path / "tiny-spans")]


def test_folders_of_spans_are_named_and_left_out(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "build", *runs]) == 0
    drawers = "`train stragglers`, `trace timeline` and `report block` draw them"
    note = f"folders of spans, left out: 1 ({runs[1]}); {drawers}"
    assert capsys.readouterr().out.splitlines()[0] == f"note: {note}"
    assert run(["report", "build", *reversed(runs), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["records"], printed["notes"]) == ([runs[0]], [note])
    assert printed["page"] == f"{runs[0]}/report.html"


def test_spans_alone_are_no_record(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "build", runs[1]]) == 2
    assert "tiny-spans" in capsys.readouterr().err
