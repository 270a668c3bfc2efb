"""Evidence of a job beside other tools' dumps: listings of queue pairs, collections of hosts, spans of our own."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.cli.main import run
from fabrictune.fleet.collect.collection import Collection, NodeState, write_collection
from fabrictune.fleet.collect.node_reading import NodeReading, Section
from fabrictune.fleet.transport.answer import State
from fabrictune.observability.hangs.analysis import diagnose
from fabrictune.observability.hangs.diagnosis import Cause
from fabrictune.observability.hangs.job import join_evidence
from fabrictune.studies.job_evidence import collect_evidence
from fabrictune.studies.own_spans import read_own_spans
from tests.observability.span_folders import slow_job, write_spans

LAB = Path(__file__).parents[2] / "golden" / "topology" / "lab.cabling.csv"
PIDS = {"node1": 100, "node2": 200}
LATER_S = 2e9


def listings(*, state: str) -> dict[str, list[dict[str, Any]]]:
    """Return two hosts' queue pairs: one of the job on mlx5_0, one of others on mlx5_1."""
    rows = (("node1", 11, 21, 12, 22), ("node2", 21, 11, 22, 12))
    return {
        host: [
            {"ifname": "mlx5_0", "port": 1, "lqpn": own, "rqpn": peer, "type": "RC", "state": state, "pid": PIDS[host]},
            {"ifname": "mlx5_1", "port": 1, "lqpn": other, "rqpn": others, "type": "RC", "state": "RTS", "pid": 7},
        ]
        for host, own, peer, other, others in rows
    }


def write_job(folder: Path) -> None:
    """Write RAS's answer of a communicator of two ranks, of which the one on node2 has launched one less."""
    folder.mkdir()
    flags = ("finalize_called", "destroy_flag", "abort_flag")
    status = {"init_state": 0, "async_error": 0, **dict.fromkeys(flags, False)}
    ranks = [
        {"rank": rank, "host": host, "pid": pid, "cuda_dev": 0, "nvml_dev": 0, "status": status,
         "collective_counts": {"AllReduce": 5 - rank}}
        for rank, (host, pid) in enumerate(PIDS.items())
    ]  # fmt: skip
    tree = {
        "nccl_version": "2.29.7",
        "communicators": [{"hash": "0x1f", "size": 2, "ranks": ranks, "missing_ranks": []}],
    }
    (folder / "ras.json").write_text(json.dumps(tree))


def write_counters(folder: Path, errors: int) -> None:
    folder.mkdir()
    for host in PIDS:
        count = 3 + errors * (host == "node2")
        path = "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
        (folder / f"{host}.txt").write_text(f"{path}:{count}\n")


def check_port(tmp_path: Path, paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Diagnose with the fabric and counters: rank 1, its queue pair, and the port of node2's mlx5_0."""
    write_counters(tmp_path / "before", 0)
    write_counters(tmp_path / "after", 900)
    counters = ["--counters", str(tmp_path / "before"), str(tmp_path / "after")]
    words = ["diagnose", *paths, "--fabric", str(LAB), *counters, "--out", str(tmp_path / "out"), "--json"]
    assert run(words) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [process["rank"] for process in printed["processes"]] == [1]
    assert printed["ports"][0] == "leaf1:Ethernet8 -> node2:mlx5_0"
    port = next(finding for finding in printed["findings"] if finding["id"] == "hang.port")
    assert port["actual"].startswith("on the way of 1 of 2 hung queue pairs")
    assert "node1/mlx5_0 to node2/mlx5_0, queue pairs 11 and 21" in " ".join(port["evidence"])


def test_a_listing_leads_from_the_missing_rank_to_its_queue_pair_and_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rank 1 is process 200 of node2, which has queue pair 21 to 11 of rank 0; queue pair 22 is of another job."""
    write_job(tmp_path / "job")
    for host, rows in listings(state="RTS").items():
        (tmp_path / "job" / f"{host}.json").write_text(json.dumps(rows))
    check_port(tmp_path, [str(tmp_path / "job")], capsys)


def test_a_collection_of_hosts_has_listings_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_job(tmp_path / "job")
    readings = []
    for host, rows in listings(state="RTS").items():
        lines = json.dumps(rows, indent=1).split("\n")
        section = Section(kind="command", name="rdma -j -d resource show qp", lines=lines)
        readings.append(NodeReading(name=host, how="python3", sections=(section,)))
    readings.append(NodeReading(name="node3", how="sh", sections=()))
    states = tuple(NodeState(name=reading.name, state=State.COLLECTED) for reading in readings)
    write_collection(Collection(readings=tuple(readings), states=states), tmp_path / "fleet")
    found = collect_evidence([tmp_path / "fleet"])
    assert len(found.queue_pairs) == 4
    assert found.notes == (f"{tmp_path / 'fleet'}: nodes without a listing of queue pairs: 1 (node3)",)
    check_port(tmp_path, [str(tmp_path / "job"), str(tmp_path / "fleet")], capsys)


def test_a_queue_pair_in_an_error_state_says_so_of_its_process(tmp_path: Path) -> None:
    """Retries that run out leave both ends in state ERR; the process of each has an error then."""
    write_job(tmp_path / "job")
    for host, rows in listings(state="ERR").items():
        (tmp_path / "job" / f"{host}.json").write_text(json.dumps(rows))
    job = join_evidence(collect_evidence([tmp_path / "job"]).evidence)
    found = diagnose(job)
    assert found is not None
    assert (found.cause, [job.processes[one].rank for one in found.processes]) == (Cause.FAILED, [1])
    assert any("queue pair 21 of mlx5_0 is in state ERR" in text for text in found.evidence)


def test_spans_say_which_rank_ended_before_the_others(tmp_path: Path) -> None:
    """Rank 11's file lacks the last step of six, which the others have written: it is behind in each of its groups."""
    spans = slow_job()
    last = int(spans.step_N.max())
    write_spans(spans.where(~((spans.rank_N == 11) & (spans.step_N == last))), tmp_path / "run")
    evidence = read_own_spans(tmp_path / "run", now_s=LATER_S * 10)
    job = join_evidence([evidence])
    found = diagnose(job)
    assert found is not None
    assert [job.processes[one].rank for one in found.processes] == [11]
    assert (found.cause, found.source) == (Cause.TRANSPORT, "spans")
    assert len(evidence.timings) > 0
    assert np.median(evidence.steps_us) > 0


def test_spans_that_still_grow_accuse_nobody(tmp_path: Path) -> None:
    spans = slow_job()
    last = int(spans.step_N.max())
    write_spans(spans.where(~((spans.rank_N == 11) & (spans.step_N == last))), tmp_path / "run")
    for path in (tmp_path / "run").rglob("*.jsonl"):
        os.utime(path, (LATER_S, LATER_S))
    evidence = read_own_spans(tmp_path / "run", now_s=LATER_S + 1)
    assert diagnose(join_evidence([evidence])) is None
    assert evidence.notes == ("spans still grow: they say how long requests take, and not who waits for whom",)


def test_whole_spans_of_a_run_that_has_ended_are_no_hang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_spans(slow_job(), tmp_path / "run")
    for path in (tmp_path / "run").rglob("*.jsonl"):
        os.utime(path, (1e9, 1e9))
    assert run(["diagnose", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hangs"] is False
