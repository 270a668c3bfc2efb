"""Comm on three gloo processes: the result of every operation and its record in the ledger; and no way around it."""

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune import trainer_probe
from fabrictune.collectives.startup.groups import ProcessGroup
from fabrictune.collectives.startup.operation_count import count_operations
from fabrictune.collectives.startup.rendezvous import rendezvous
from fabrictune.collectives.startup.store_operations import Steps
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.trainer_probe.launcher.processes import launch

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

pytest.importorskip("torch")

import torch
import torch.distributed as dist

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.parallel.ring_attention import RingContext, ring_pairs
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.policies import POLICIES

NUM_RANKS = 3
LAYOUT = ParallelLayout(dp=NUM_RANKS)


def run_every_operation(folder: Path) -> list[dict[str, NDArray[Any]]]:
    """Each rank r starts from r + (0, 1, ..., 5)."""
    return launch(LAYOUT, partial(use_every_operation, folder))


def use_every_operation(folder: Path, member: "Member") -> dict[str, NDArray[Any]]:
    comm, rank = Comm(LAYOUT, member), member.rank
    comm.restart_ledger()
    start = torch.arange(6, dtype=torch.float64) + rank
    found = {name: start.clone() for name in ("all_reduce", "broadcast")}
    comm.all_reduce(found["all_reduce"], axis="dp", tag="sum", policy="test").wait()
    comm.broadcast(found["broadcast"], root=1, axis="dp", tag="copy").wait()
    found["reduce_scatter"] = torch.empty(2, dtype=torch.float64)
    comm.reduce_scatter(found["reduce_scatter"], start, axis="dp", tag="sum").wait()
    found["all_gather"] = torch.empty(18, dtype=torch.float64)
    comm.all_gather(found["all_gather"], start, axis="dp", tag="all").wait()
    found["receive"] = torch.empty(6, dtype=torch.float64)
    incoming = comm.receive(found["receive"], peer=(rank - 1) % NUM_RANKS, axis="dp", tag="left")
    comm.send(start, peer=(rank + 1) % NUM_RANKS, axis="dp", tag="right").wait()
    incoming.wait()
    comm.barrier(axis="dp", tag="end").wait()
    comm.trace().write(folder / f"{rank}.parquet")
    return {name: tensor.numpy() for name, tensor in found.items()}


def test_every_operation_does_what_it_is_called(tmp_path: Path) -> None:
    """The sum over ranks of r + i is 3 + 3i; rank 1's copy is 1 + i; part p of the sum holds i = 2p and 2p + 1."""
    index = np.arange(6.0)
    for rank, found in enumerate(run_every_operation(tmp_path)):
        np.testing.assert_array_equal(found["all_reduce"], 3 + 3 * index)
        np.testing.assert_array_equal(found["broadcast"], 1 + index)
        np.testing.assert_array_equal(found["reduce_scatter"], (3 + 3 * index)[2 * rank : 2 * rank + 2])
        np.testing.assert_array_equal(found["all_gather"], np.concatenate([index, 1 + index, 2 + index]))
        np.testing.assert_array_equal(found["receive"], index + (rank - 1) % NUM_RANKS)


def test_every_operation_is_entered_with_the_full_buffer(tmp_path: Path) -> None:
    """nccl-tests' size: 6 doubles are 48 B; an all-gather's buffer is its output, 3 * 48 B; a barrier's is nothing."""
    run_every_operation(tmp_path)
    trace = CommTrace.read(tmp_path / "0.parquet")
    entered = list(zip(map(Operation, trace.operation_N), trace.bytes_N, trace.peer_N, trace.tag_N, strict=True))
    assert entered == [
        (Operation.ALL_REDUCE, 48, UNKNOWN, "sum"),
        (Operation.BROADCAST, 48, 1, "copy"),
        (Operation.REDUCE_SCATTER, 48, UNKNOWN, "sum"),
        (Operation.ALL_GATHER, 144, UNKNOWN, "all"),
        (Operation.RECEIVE, 48, 2, "left"),
        (Operation.SEND, 48, 1, "right"),
        (Operation.BARRIER, 0, UNKNOWN, "end"),
    ]
    assert trace.policy_N[0] == "test"
    assert (trace.complete_ps_N >= trace.issue_ps_N).all()
    assert (trace.exposed_wait_ps_N <= trace.complete_ps_N - trace.issue_ps_N).all()
    assert trace.dependencies.of(5).tolist() == [3], "the send was issued before the receive was waited for"
    assert sorted(trace.dependencies.of(6).tolist()) == [4, 5]


PIPELINES = ParallelLayout(tp=2, pp=4)
RING = [pair for place in range(4) for pair in ((place, (place + 1) % 4), ((place + 1) % 4, place))]


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dist.ProcessGroup, int]]:
    """The group and peer of every message, and the group of every sum, in order."""
    carried: list[tuple[dist.ProcessGroup, int]] = []

    def carry(tensor: torch.Tensor, peer: int = UNKNOWN, *, group: dist.ProcessGroup, async_op: bool = False) -> None:
        carried.append((group, peer))

    for name in ("isend", "irecv", "send", "recv", "all_reduce"):
        monkeypatch.setattr(dist, name, carry)
    return carried


def test_each_way_between_two_ranks_has_a_communicator(carried: list[tuple[dist.ProcessGroup, int]]) -> None:
    """The second place of four sends to both its neighbours and receives from both: up, down, up, down."""
    with join_alone(PIPELINES, 2) as member:
        comm, tensor = Comm(PIPELINES, member), torch.zeros(1)
        for peer in (4, 0):
            comm.send(tensor, peer=peer, axis="pp", tag="out")
        for peer in (0, 4):
            comm.receive(tensor, peer=peer, axis="pp", tag="in")
        up, down = (member.process_groups[name] for name in ("pp0", "pp0-down"))
        assert carried == [(up, 4), (down, 0), (up, 0), (down, 4)]
        assert set(comm.trace().axis_N) == {"pp"}
        assert {comm.trace().groups[group] for group in comm.trace().group_N} == {(0, 2, 4, 6)}


PAIRS: dict[ParallelLayout, Mapping[Axis, Sequence[tuple[int, int]]]] = {
    PIPELINES: {"pp": RING},
    ParallelLayout(cp=3, pp=4): {"cp": sorted(ring_pairs(3)), "pp": RING},
    ParallelLayout(cp=2, dp=2): {"cp": sorted(ring_pairs(2)), "pp": ()},
}


@pytest.mark.parametrize("layout", PAIRS)
def test_communicators_are_made_in_one_order(
    layout: ParallelLayout, carried: list[tuple[dist.ProcessGroup, int]]
) -> None:
    """Each rank's own, by group and, for messages, by pair, as a rendezvous of their ranks: no rank waits for ever."""
    makings = []
    for rank in range(layout.world_size):
        with join_alone(layout, rank) as member:
            carried.clear()
            Comm(layout, member).connect(PAIRS[layout], torch.device("cpu"))
            names = {group: name for name, group in member.process_groups.items()}
            members = {group.name: group.members for group in member.plan.groups}
            makings.append([(names[group], peer, members[names[group]]) for group, peer in carried])

    def make(rank: int) -> Steps[None]:
        for name, peer, members in makings[rank]:
            pair = members if peer == UNKNOWN else tuple(sorted((rank, peer)))
            yield from rendezvous(ProcessGroup(name=f"{name} {pair}", members=pair), rank)

    count_operations(make(rank) for rank in range(layout.world_size))
    if layout == PIPELINES:
        assert [(name, peer) for name, peer, _ in makings[2]] == [
            *[("tp1", UNKNOWN), ("pp0", UNKNOWN), ("pp0", 0), ("pp0", 4), ("pp0-down", 0), ("pp0-down", 4)],
        ]


def test_a_ring_of_two_has_a_communicator_for_each_way(carried: list[tuple[dist.ProcessGroup, int]]) -> None:
    """Both neighbours of a rank are the other one: what goes up and what comes down share nothing."""
    layout = ParallelLayout(cp=2)
    for rank, names in ((0, ("cp0-down", "cp0")), (1, ("cp0", "cp0-down"))):
        with join_alone(layout, rank) as member:
            carried.clear()
            ring = RingContext(Comm(layout, member), POLICIES["cp"])
            ring.start_exchange(torch.zeros(1), "blocks")
            assert [group for group, _ in carried] == [member.process_groups[name] for name in names]


COLLECTIVES = {
    *("all_reduce", "reduce_scatter", "reduce_scatter_tensor", "all_gather", "all_gather_into_tensor", "all_to_all"),
    *("all_to_all_single", "broadcast", "reduce", "gather", "scatter", "send", "recv", "isend", "irecv", "barrier"),
    *("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "batch_isend_irecv"),
}
DISTRIBUTED = {"dist", "torch.distributed"}
START_UP_TRIAL = {("local_trials.py", "all_reduce"), ("operation/rank.py", "barrier")}  # before Comm, and after its end


def test_ranks_communicate_through_comm_alone() -> None:
    """A request past Comm is in no trace; of torch.distributed other modules use process groups, and no collective."""
    folder = Path(trainer_probe.__file__).parent
    calls = {
        (path.relative_to(folder).as_posix(), node.attr)
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in COLLECTIVES and ast.unparse(node.value) in DISTRIBUTED
    }
    others = {call for call in calls if call[0] != "comm.py"}
    assert others == START_UP_TRIAL
    assert ("comm.py", "all_reduce") in calls, "the test sees what it looks for"
    assert not any("from torch.distributed import" in path.read_text() for path in folder.rglob("*.py"))
