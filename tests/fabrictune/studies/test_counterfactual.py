"""What a step gains once a request is healthy: measured, modelled, and what is missing for it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.hardware.files import find_profile
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.job import Job, join_evidence
from fabrictune.observability.hangs.reading import read_evidence
from fabrictune.reports.page import build_page
from fabrictune.studies.counterfactual import Counterfactual, find_counterfactual

RANKS = [0, 8]  # on two hosts of eight
TIMED_OUT = (
    "[rank8]:[E810 03:04:11.06 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=524288, NumelOut=524288, Timeout(ms)=60000) ran for 60100 "
    "milliseconds before timing out.\n"
    "[rank8]:[E810 03:04:11.07 ProcessGroupNCCL.cpp:2241] [PG ID 1 PG GUID 1(mesh) Rank 1]  failure detected by "
    "watchdog at work sequence id: 9 PG status: last enqueued work: 9, last completed work: 8\n"
)


def write_dumps(folder: Path, *, duration_ms: float | None) -> None:
    """Write dumps of both ranks of a group: rank 8 does not complete number 9, 4 MiB as those before it."""
    for rank in RANKS:
        entries = []
        for number in range(5, 10):
            is_open = (rank, number) == (8, 9)
            entry = {
                "process_group": ["1", "mesh"],
                "collective_seq_id": number,
                "profiling_name": "nccl:all_reduce",
                "input_sizes": [[2**21]],
                "input_dtypes": ["BFloat16"],
                "state": "started" if is_open else "completed",
            }
            entries.append(entry | ({"duration_ms": duration_ms + number / 10} if duration_ms and not is_open else {}))
        configuration = {"1": {"name": "1", "desc": "mesh", "ranks": str(RANKS)}}
        dump = {"version": "2.10", "pg_config": configuration, "entries": entries}
        (folder / f"trace_rank_{rank}").write_text(json.dumps(dump))


def counterfactual(folder: Path, hardware: str = "") -> Counterfactual:
    job: Job = join_evidence(read_evidence([folder]).evidence)
    diagnosis = diagnose(job)
    assert diagnosis is not None
    assert [job.processes[process].rank for process in diagnosis.processes] == [8]
    return find_counterfactual(diagnosis, job, find_profile(hardware) if hardware else None)


def test_requests_like_it_say_how_long_a_healthy_one_takes(tmp_path: Path) -> None:
    """Its group's took 1.5 to 1.9 ms; how long it is open is in no dump."""
    write_dumps(tmp_path, duration_ms=1.0)
    found = counterfactual(tmp_path)
    assert found.request is not None
    assert (found.request.low, found.request.expected, found.request.high) == pytest.approx((1.5, 1.7, 1.9))
    assert found.gain is None
    assert found.missing == ("for how long it is open (the line of the watchdog that timed it out)",)
    assert str(found).startswith("healthy: this request takes 1.7 ms (1.5 to 1.9), by 5 requests like it of its group")


def test_without_any_a_profile_gives_it_by_the_closed_form(tmp_path: Path) -> None:
    """A ring of two hosts: 2 x 10 us and 4 MiB over 360 Gbps, 113 us, of which a tenth of the rate is uncertain."""
    write_dumps(tmp_path, duration_ms=None)
    assert counterfactual(tmp_path).missing[0].startswith("how long a healthy one takes: requests like it")
    found = counterfactual(tmp_path, "h100")
    assert found.request is not None
    assert found.request.expected == pytest.approx(0.1132, rel=0.01)
    assert found.request.high == pytest.approx(0.1132 + 0.0117, rel=0.02)
    assert found.assumption == "ranks lie on hosts in order, 8 each; the step waits for all of this request"


def test_the_watchdog_says_for_how_long_it_was_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """60,100 ms less 0.113 ms; in JSON, in the finding, in the record and on the page."""
    (tmp_path / "job").mkdir()
    write_dumps(tmp_path / "job", duration_ms=None)
    (tmp_path / "job" / "8.err").write_text(TIMED_OUT)
    out = tmp_path / "record"
    assert run(["diagnose", str(tmp_path / "job"), "--hardware", "h100", "--out", str(out), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["healthy"]["gain"]["expected"] == pytest.approx(60_100 - 0.1132, abs=0.01)
    assert printed["healthy"]["missing"] == []
    record = RunRecord.read(out)
    assert record.tables["hang_healthy"]["gain_expected_ns"].tolist() == pytest.approx([60_099_886_800], abs=10_000)
    assert (
        record.findings[0].evidence[0].startswith("healthy: step -60,100 ms (-60,100 to -60,100): this request takes")
    )
    page = build_page([record], title="hang")
    assert "once it is healthy" in page
    assert "60,100 ms (60,100 to 60,100)" in page
