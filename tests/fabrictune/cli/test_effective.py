"""`train effective` as a user calls it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from fabrictune.trainer_probe.operation.journal import open_journal
from tests.trainer_probe.survival.journals import ONE_FAULT


@pytest.fixture(autouse=True)
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's folder with a journal of one fault."""
    monkeypatch.chdir(tmp_path)
    journal = open_journal("job")
    for elapsed_s, kind, values in ONE_FAULT:
        journal.append(kind, values, elapsed_s=elapsed_s)
    journal.close()


def test_it_says_what_is_effective_and_where_the_rest_went(capsys: pytest.CaptureFixture[str]) -> None:
    """50 of 141 s; the outage with its cost; a record with a section on the page and a figure."""
    assert run(["train", "effective", "job", "--plot", "time.svg"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "effective 35.46% of 141 s: 5 steps kept, 2 done again, 1 outage"
    assert lines[1] == "by iterations (steps times their median, 10 s): 35.46%"
    assert any(line.split() == ["recomputed", "steps", "26", "s", "18.44%"] for line in lines)
    assert any("rank killed" in line and "rank 3" in line and "73 s" in line for line in lines)
    assert lines[-1] == "record: runs/job-effective"
    record = RunRecord.read(Path("runs/job-effective"))
    html = build_page([record], title="job")
    assert "Effective training time" in html
    assert "what became of the time" in html
    assert "stack-5" in html
    assert Path("time.svg").read_text().startswith("<?xml")


def test_all_of_it_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """The parts sum to the whole, and so do those of the windows."""
    assert run(["train", "effective", "job/journal.sqlite", "--window", "10 s", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert sum(row["duration_ns"] for row in printed["effective_parts"]) == printed["total_ns"] == 141 * 10**9
    assert printed["record"] == "runs/job-effective"
    windows = printed["effective_windows"]
    assert (
        sum(value for row in windows for key, value in row.items() if key.endswith("_ns") and key != "end_ns")
        == (printed["total_ns"])
    )
    assert printed["is_finished"]
    assert printed["effective_outages"][0]["cause"] == "rank killed"


def test_what_is_not_known_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A generation that ended without an event: a note, a part of its own, and a finding."""
    journal = open_journal("lost")
    for elapsed_s, kind, values in ONE_FAULT:
        if kind not in ("fault detected", "decision", "ranks down", "job ended"):
            journal.append(kind, values, elapsed_s=elapsed_s)
    journal.close()
    assert run(["train", "effective", "lost"]) == 0
    out = capsys.readouterr().out
    assert "not known: generations that ended without an event" in out
    assert "not known: the job has not ended: its time is counted up to its last event" in out
    assert "[effective.unknown-time]" in out


def test_an_empty_journal_is_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """A job that has not begun has no figure to divide by zero, on the page neither."""
    open_journal("empty").close()
    assert run(["train", "effective", "empty"]) == 0
    assert capsys.readouterr().out.startswith("effective 0.00% of 0")
    build_page([RunRecord.read(Path("runs/empty-effective"))], title="empty")


@pytest.mark.parametrize("place", ["nowhere", "file.sqlite", "folder"])
def test_what_is_no_journal_ends_with_two(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing one, another file, and a folder without one."""
    Path("file.sqlite").write_text("no database")
    Path("folder").mkdir()
    assert run(["train", "effective", place]) == 2
    assert place in capsys.readouterr().err
