"""One rail for all: the rail of the whole run, transfer by transfer, and refused where rails are not alike."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import FabrictuneWarning, InputError
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.scenario.files import parse_scenario
from fabrictune.studies.simulation import simulate

LAYOUT = ParallelLayout(tp=2, dp=4, pp=2)
US = 10**6
SCENARIO = """name: step
fabric:
  {builder: clos, num_hosts: 8, hosts_per_tor_set: 4, nics_per_host: %s, planes: %s, tiers: 2, uplinks_per_tor: %s}
traffic: {%s}
%s
"""
OF_FILE = "workload: comm_trace, file: %s, layout: {tp: 2, dp: 4, pp: 2}"

# Of each place: axis, operation, bytes, work before in microseconds, and the rows it waits for. Buffers gathered over
# data-parallel ranks meet messages between places, and work waits for ends that come at different times.
FIRST = (
    ("dp", Operation.ALL_GATHER, 400_000, 0, ()),
    ("tp", Operation.ALL_GATHER, 64_000, 3, (0,)),
    ("work", Operation.BARRIER, 0, 20, (1,)),
    ("tp", Operation.REDUCE_SCATTER, 32_000, 5, (2,)),
    ("tp", Operation.REDUCE_SCATTER, 32_000, 25, (2,)),
    ("pp", Operation.SEND, 300_000, 1, (3, 4)),
    ("pp", Operation.RECEIVE, 300_000, 0, (3,)),
    ("tp", Operation.ALL_REDUCE, 8_000, 2, (6, 4)),
    ("dp", Operation.REDUCE_SCATTER, 400_000, 7, (7, 2)),
    ("work", Operation.BARRIER, 0, 9, (8, 5)),
)
SECOND = (
    ("dp", Operation.ALL_GATHER, 800_000, 2, ()),
    ("pp", Operation.RECEIVE, 300_000, 0, ()),
    ("tp", Operation.ALL_GATHER, 64_000, 0, (0, 1)),
    ("work", Operation.BARRIER, 0, 11, (2, 0)),
    ("pp", Operation.SEND, 300_000, 4, (3,)),
    ("dp", Operation.ALL_REDUCE, 200_000, 0, (3, 2)),
)


def template(rank: int, rows: tuple[tuple[Any, ...], ...]) -> CommTrace:
    axes = [row[0] for row in rows]
    groups = [(rank,) if axis == "work" else tuple(LAYOUT.group_of(axis, rank)) for axis in axes]
    peers = [
        group[(group.index(rank) + 1) % 2] if axis == "pp" else UNKNOWN
        for axis, group in zip(axes, groups, strict=True)
    ]
    return CommTrace(
        groups=tuple(groups),
        rank_N=np.full(len(rows), rank),
        operation_N=np.array([row[1] for row in rows], np.int64),
        group_N=np.arange(len(rows)),
        peer_N=np.array(peers),
        bytes_N=np.array([row[2] for row in rows]),
        compute_before_ps_N=np.array([row[3] for row in rows]) * US,
        step_N=np.zeros(len(rows), np.int64),
        axis_N=tuple(axes),
        policy_N=("none",) * len(rows),
        tag_N=tuple(f"{rank}.{place}" for place in range(len(rows))),
        dependencies=Dependencies.from_lists([row[4] for row in rows]),
    )


def job(first: tuple[tuple[Any, ...], ...] = FIRST) -> JobTrace:
    return JobTrace.of_places(LAYOUT, [template(0, first), template(8, SECOND)])


def run(traffic: str, more: str, *, planes: int = 2, uplinks: int = 1) -> RunRecord:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FabrictuneWarning)
        return simulate(
            parse_scenario(SCENARIO % (max(planes, 2), planes, uplinks, traffic, more), Path()), with_collisions=False
        )


def flows(record: RunRecord, rail: int) -> list[tuple[int, ...]]:
    """Return hosts, size and times of a rail's transfers over the fabric, in order of queue pair and start."""
    table = {name: np.asarray(values) for name, values in record.tables["transfers"].items()}
    names = ("source", "destination", "bytes", "ready_ps", "start_ps", "finish_ps", "acknowledged_ps")
    is_own = (table["qp"] >= 0) & (table["source"] % 2 == rail)
    columns = [table[name][is_own] // (2 if name in names[:2] else 1) for name in names]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.fixture
def planned(tmp_path: Path) -> str:
    job().write(tmp_path / "job.parquet")
    return OF_FILE % (tmp_path / "job.parquet")


@pytest.mark.parametrize(
    ("skip", "expansion", "crowding"),
    [("off", "", 4), ("exact", "", 4), ("off", ", expansion: {channels: 2, slice: 20 KB}", 8)],
)
@pytest.mark.parametrize("law", ["none", "swift"])
def test_the_rail_is_that_of_the_whole_run(planned: str, skip: str, expansion: str, crowding: int, law: str) -> None:
    """Both rails of the whole are the rail that stands for them, to the picosecond; no packet of it is missing."""
    traffic, more = planned + expansion, f"law: {law}\nengine: {{name: packet, skip: {skip}}}"
    whole, folded = run(traffic, more), run(traffic, f"{more}\nfold: rails")
    assert len(flows(folded, 0)) > 60
    assert flows(folded, 0) == flows(whole, 0) == flows(whole, 1)
    assert flows(folded, 1) == []
    assert folded.run["fold"] == {
        "rails": 2,
        "simulated_rail": 0,
        "are_ways_alike": True,
        "most_queue_pairs_on_a_link": [crowding, crowding],
        "collectives_inside_hosts": 5,
        "of_them_may_overlap": 0,
    }
    ports, fabric = folded.tables["ports"]["port"], folded.tables["fabric"]
    assert {str(fabric["node_name"][port])[-2:] for port in ports if fabric["nic"][port] < 0} == {"-0"}
    for name, values in folded.tables["ports"].items():
        assert values.tolist() == whole.tables["ports"][name][ports].tolist(), name


def test_a_job_from_requests_is_folded_as_well() -> None:
    """Its trace is compared with what its first ranks would ask for; the run is the same as of the whole."""
    traffic, more = "workload: all_reduce, message: 900 KB, layout: {tp: 2, dp: 8}", "law: none"
    whole, folded = run(traffic, more), run(traffic, f"{more}\nfold: rails")
    assert flows(folded, 0) == flows(whole, 0) == flows(whole, 1)
    assert folded.run["collective"] == whole.run["collective"]


def test_other_ways_are_said_and_the_fuller_rail_is_simulated(planned: str) -> None:
    """With four uplinks to choose from hashes take rails apart: the rail is that of its own in the whole, no more."""
    more = "routing: {seed: 3}\nlaw: none\nfold: rails"
    folded = run(planned, more, uplinks=4)
    fold, rail = folded.run["fold"], folded.run["fold"]["simulated_rail"]
    assert not fold["are_ways_alike"]
    assert fold["most_queue_pairs_on_a_link"][rail] == max(fold["most_queue_pairs_on_a_link"])
    assert flows(folded, rail) != []
    assert flows(folded, 1 - rail) == []
    (note,) = (note for note in folded.run["notes"] if note.startswith("fold: "))
    assert note.startswith(
        f"fold: 1 of 2 rails simulated (rail {rail}); the others carry the same traffic on links of "
    )
    assert "hashes and draws differ" in note
    assert "tensor groups wait for the slowest rail" in note


def test_collectives_that_may_meet_over_nvlink_are_counted(tmp_path: Path) -> None:
    """The second begins 2 us after the first, which takes longer: 64 KB in halves, 32 KB of which cross NVLink."""
    rows = (*FIRST[:3], ("tp", Operation.REDUCE_SCATTER, 32_000_000, 5, (2,)), *FIRST[4:])
    job(rows).write(tmp_path / "job.parquet")
    folded = run(OF_FILE % (tmp_path / "job.parquet"), "fold: rails")
    assert folded.run["fold"]["of_them_may_overlap"] == 1
    assert any("where 20.0% of them may meet another, which is not simulated" in note for note in folded.run["notes"])


@pytest.mark.parametrize(
    ("traffic", "more", "planes", "message"),
    [
        (
            "workload: all_reduce, message: 1 MB, layout: {tp: 2, dp: 8}",
            "",
            1,
            "tor0-1, which NICs of rail 0 and of rail 1 reach",
        ),
        ("workload: all_reduce, message: 1 MB, layout: {tp: 1, dp: 8}", "", 2, "a tensor-parallel degree of 1"),
        ("workload: all_reduce, message: 1 MB, layout: {tp: 4, dp: 4}", "", 2, "a tensor group on several hosts"),
        (
            "workload: all_reduce, message: 1 MB, layout: {tp: 2, dp: 4}, gpus_per_host: 4",
            "",
            2,
            "tensor groups on other GPUs from host to host",
        ),
        (
            "workload: collective, operation: reduce_scatter, axis: tp, message: 10001 B, layout: {tp: 4, dp: 4}",
            "",
            4,
            "members that end reduce_scatter of 10001 B inside a host one by one",
        ),
        (
            "workload: collective, operation: broadcast, axis: tp, message: 1 KB, layout: {tp: 2, dp: 4}",
            "",
            2,
            "another number of requests|whose peer is not that|messages from one member",
        ),
        ("workload: incast, senders: 3, message: 1 KB", "", 2, "traffic 'incast'"),
        (
            "workload: all_reduce, message: 1 MB, layout: {tp: 2, dp: 8}",
            "faults: [{fault: link_down, link: 'tor0-0:up0', at: 1 us}]",
            2,
            "faults or ports of single queue pairs",
        ),
    ],
)
def test_rails_that_are_not_alike_are_refused(traffic: str, more: str, planes: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(traffic, f"{more}\nfold: rails", planes=planes)


def test_ranks_that_ask_for_different_things_are_refused(tmp_path: Path) -> None:
    """A trace of all ranks in which one rank has more work than the first of its place."""
    trace = job().written_out()
    work_ps = trace.compute_before_ps_N.copy()
    work_ps[27] += 1
    replace(trace, compute_before_ps_N=work_ps).write(tmp_path / "trace.parquet")
    with pytest.raises(InputError, match="row 27, whose compute_before_ps is not that of the first rank of its"):
        run(OF_FILE % (tmp_path / "trace.parquet"), "fold: rails")


def test_a_trace_of_all_ranks_is_folded_as_its_templates_are(tmp_path: Path, planned: str) -> None:
    job().written_out().write(tmp_path / "trace.parquet")
    folded = run(OF_FILE % (tmp_path / "trace.parquet"), "fold: rails")
    assert flows(folded, 0) == flows(run(planned, "fold: rails"), 0)
