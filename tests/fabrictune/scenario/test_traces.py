"""Traces of jobs in a scenario: those of which ranks are missing are refused, not run as a smaller job."""

import json
from pathlib import Path

import numpy as np
import pytest

from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.errors import FabrictuneWarning, InputError, TraceError
from fabrictune.foundation.traces import Operation
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.traffic import UNKNOWN_OVERLAP

SCENARIO = """
name: traced
fabric: {{builder: clos, num_hosts: 16, hosts_per_tor_set: 16, nics_per_host: 1, tiers: 2}}
traffic: {{workload: comm_trace, file: step.parquet, layout: {{dp: {num_ranks}}}}}
"""


def compose_trace(folder: Path, ranks: list[int]) -> None:
    """Compose a job of as many ranks as the highest says, of which these ask for an all-reduce among themselves."""
    rows = [TraceRow(rank=rank, operation=Operation.ALL_REDUCE, group=tuple(ranks), num_bytes=10**6) for rank in ranks]
    build_trace(rows).write(folder / "step.parquet")
    (folder / "traced.yaml").write_text(SCENARIO.format(num_ranks=max(ranks) + 1))
    assert len(compose(load_scenario(folder / "traced.yaml")).traffic)


def test_two_of_sixteen_missing_ranks_are_named(tmp_path: Path) -> None:
    """Their files are missing; a ring of 14 ran instead of the job's 16."""
    with pytest.raises(TraceError) as raised:
        compose_trace(tmp_path, [rank for rank in range(16) if rank not in (3, 7)])
    assert str(raised.value) == (
        f"{tmp_path}/step.parquet: no request of ranks 3, 7\n  allowed: requests of all 16 ranks\n"
        "  next: give the traces of all ranks (Chakra: NAME.RANK.et of each, and comm_group.json)"
    )
    compose_trace(tmp_path, list(range(16)))


def test_one_rank_alone_moves_nothing(tmp_path: Path) -> None:
    """It was a group of one, and 0 flows with all of their rate."""
    with pytest.raises(TraceError, match="groups of one rank each, of which nothing crosses the fabric"):
        compose_trace(tmp_path, [0])


def test_notes_of_a_reader_reach_the_record(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """One profile of two ranks with a kind that is not read: both are among the notes of what is run.

    So is that a profile does not say what a rank computes while it communicates.
    """
    arguments = {"In msg nelems": 100, "Out msg nelems": 100, "dtype": "Float", "Process Group Ranks": "[0, 1]"}
    events = [
        {"ph": "X", "cat": "kernel", "name": "nccl", "ts": at, "dur": 1, "args": {**arguments, "Collective name": name}}
        for at, name in enumerate(("allreduce", "reduce"))
    ]
    (tmp_path / "profile.json").write_text(json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": events}))
    (tmp_path / "traced.yaml").write_text(SCENARIO.format(num_ranks=2).replace("step.parquet", "profile.json"))
    notes = compose(load_scenario(tmp_path / "traced.yaml")).notes
    assert [note.rpartition(": ")[2] for note in notes] == ["1", "1 of 2", UNKNOWN_OVERLAP]
    assert [str(warning.message) for warning in recwarn] == list(notes)


def scaled_scenario(folder: Path, layout: str) -> Path:
    """Return a scenario of a trace of two ranks, with other keys of its traffic."""
    rows = [TraceRow(rank=rank, operation=Operation.ALL_REDUCE, group=(0, 1), num_bytes=10**6) for rank in (0, 1)]
    build_trace(rows).write(folder / "step.parquet")
    path = folder / "traced.yaml"
    path.write_text(SCENARIO.replace("layout: {{dp: {num_ranks}}}", layout).replace("{{", "{").replace("}}", "}"))
    return path


def test_a_layout_that_does_not_fit_its_trace_is_refused(tmp_path: Path) -> None:
    """Both are named, and how a job of more replicas is written."""
    with pytest.raises(InputError) as raised:
        compose(load_scenario(scaled_scenario(tmp_path, "layout: {tp: 2, dp: 4}")))
    assert str(raised.value) == (
        f"{tmp_path}/traced.yaml:4: traffic.layout: 8 ranks (tp 2, dp 4, pp 1), and {tmp_path}/step.parquet has 2\n"
        "  allowed: as many ranks as the trace has\n"
        "  next: set degrees whose product is 2; with these as `traced_layout`, `layout` may have more of dp"
    )


def test_a_trace_is_scaled_to_more_replicas_and_it_is_said(tmp_path: Path) -> None:
    """Two ranks were traced, eight run: seven eighths of the buffer, twice, from each."""
    path = scaled_scenario(tmp_path, "layout: {dp: 8}, traced_layout: {dp: 2}")
    with pytest.warns(FabrictuneWarning, match="scaled to"):
        composed = compose(load_scenario(path))
    assert composed.notes == (
        "trace of tp 1, dp 2, pp 1 scaled to tp 1, dp 8, pp 1: replicas repeat the requests and the work of the traced "
        "ones, buffers along dp keep their size",
    )
    sent = np.bincount(composed.traffic.source_N, weights=composed.traffic.bytes_N)
    assert sent.tolist() == [2 * 7 / 8 * 10**6] * 8
