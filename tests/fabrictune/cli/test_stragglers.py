"""`train stragglers` and `train decay` as a user calls them."""

import json
from pathlib import Path

import pytest

from benchmarks.studies.planted_stragglers.jobs import Disturbance, JobSize, simulate
from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from tests.observability.span_folders import slow_job, write_spans

SIZE = JobSize(dp=3, pp=1, num_batches=1, num_steps=12)


@pytest.fixture(autouse=True)
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_straggler_is_in_json_record_and_page(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning that sets the exit code where it is asked to; the machine's row of the map is step 3: to 10 %."""
    write_spans(slow_job(), Path("job"))
    assert run(["train", "stragglers", "job", "--json", "--fail-on", "warning"]) == 1
    values = json.loads(capsys.readouterr().out)
    assert values["num_stragglers"] == 1
    assert values["stragglers"][0]["ranks"] == "11"
    assert values["stragglers"][0]["hosts"] == "node0011"
    assert values["findings"][0]["id"] == "straggler.slow-rank"
    html = build_page([RunRecord.read(Path("runs/job-stragglers"))], title="job")
    assert "Stragglers and decay" in html
    assert "node0011, place 1, backward" in html
    assert "fill-3" in html


def test_two_runs_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Without records of training beside the spans, over the steps that both have."""
    for name, seed in (("today", 1), ("yesterday", 2)):
        write_spans(simulate(SIZE, Disturbance.none(SIZE), seed), Path(name))
    assert run(["train", "decay", "today", "--against", "yesterday"]) == 0
    out = capsys.readouterr().out
    assert "to the same steps: 11 steps in" in out
    assert "note: a run has no record with ten losses beside its spans" in out
    html = build_page([RunRecord.read(Path("runs/today-decay"))], title="job")
    assert "time to the loss, against another run" in html


def test_a_folder_without_spans_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job").mkdir()
    assert run(["train", "stragglers", "job"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "job: no spans (rank-00000.jsonl)",
        "  next: give the folder that `fabrictune train run --out` or `train operate` wrote",
    ]
