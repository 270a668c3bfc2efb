"""Matching requests into collectives: by group and turn, whatever the order of rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.collectives.request_matching import match_requests
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation

Request = tuple[int, int, Operation, int]  # rank, group, operation, bytes


def make_trace(groups: tuple[tuple[int, ...], ...], requests: Sequence[Request]) -> CommTrace:
    rank, group, operation, size = (np.array(column, np.int64) for column in zip(*requests, strict=True))
    zeros = np.zeros(len(requests), np.int64)
    return CommTrace(
        groups=groups,
        rank_N=rank,
        operation_N=operation,
        group_N=group,
        peer_N=zeros + UNKNOWN,
        bytes_N=size,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=("dp",) * len(requests),
        policy_N=("none",) * len(requests),
        tag_N=("",) * len(requests),
        dependencies=Dependencies.none(len(requests)),
    )


def test_the_kth_requests_of_all_members_meet() -> None:
    """Rank 1 asks for both collectives before rank 0 asks for any; they still meet first with first."""
    reduce = Operation.ALL_REDUCE
    trace = make_trace(((0, 1),), [(1, 0, reduce, 8), (1, 0, reduce, 16), (0, 0, reduce, 8), (0, 0, reduce, 16)])
    (batch,) = match_requests(trace)
    assert batch.request_Cn.tolist() == [[2, 0], [3, 1]]
    assert batch.bytes_C.tolist() == [8, 16]


def test_members_stand_in_ring_order() -> None:
    """The ring is the group's order of ranks, not that of the rows."""
    trace = make_trace(((2, 0, 1),), [(rank, 0, Operation.ALL_GATHER, 3) for rank in range(3)])
    (batch,) = match_requests(trace)
    assert batch.request_Cn.tolist() == [[2, 0, 1]]


def make_broadcast(roots: Sequence[int]) -> CommTrace:
    """Return a broadcast among ranks 5, 3 and 4, in this ring order, each naming its root."""
    trace = make_trace(((5, 3, 4),), [(rank, 0, Operation.BROADCAST, 9) for rank in (3, 4, 5)])
    return replace(trace, peer_N=np.array(roots))


def test_a_broadcast_begins_at_its_root() -> None:
    """Root 3 is second in the ring 5, 3, 4: the chain is 3, 4, 5, rows 0, 1, 2."""
    (batch,) = match_requests(make_broadcast([3, 3, 3]))
    assert batch.request_Cn.tolist() == [[0, 1, 2]]


def test_members_that_name_different_roots_are_refused() -> None:
    """Two roots would both send, and nobody receive."""
    with pytest.raises(TraceError, match="broadcast of 9 B from rank"):
        match_requests(make_broadcast([3, 3, 5]))


def test_a_root_outside_the_group_is_refused() -> None:
    """Rank 7 cannot be the source of what 3, 4 and 5 receive; nor can a root that was left out."""
    for root in (7, UNKNOWN):
        with pytest.raises(TraceError) as error:
            match_requests(make_broadcast([root] * 3))
        assert str(error.value) == (
            f"communication trace, row 0: root {root}, which is not in group 0\n  allowed: a member of the group"
        )


@pytest.mark.parametrize(("group", "root"), [(1, -1), (0, 4)])
def test_a_root_that_looks_like_a_member_of_the_group_beside_is_refused(group: int, root: int) -> None:
    """Of groups of 0 and 3, and of 0 and 1: before the second's lowest rank, and behind the first's highest."""
    groups = ((0, 3), (0, 1))
    trace = make_trace(groups, [(rank, group, Operation.BROADCAST, 9) for rank in groups[group]])
    with pytest.raises(TraceError, match=f"root {root}, which is not in group {group}"):
        match_requests(replace(trace, peer_N=np.array([root, root])))


def test_kinds_are_kept_apart() -> None:
    """Groups of two and of three, and two operations on one of them: three batches."""
    requests = [(rank, 0, Operation.ALL_REDUCE, 4) for rank in (0, 1)]
    requests += [(rank, 0, Operation.ALL_GATHER, 4) for rank in (0, 1)]
    requests += [(rank, 1, Operation.ALL_REDUCE, 4) for rank in (0, 1, 2)]
    batches = match_requests(make_trace(((0, 1), (0, 1, 2)), requests))
    assert [(batch.operation, batch.num_members) for batch in batches] == [
        (Operation.ALL_REDUCE, 2),
        (Operation.ALL_REDUCE, 3),
        (Operation.ALL_GATHER, 2),
    ]


def test_a_member_that_asks_less_often_is_named() -> None:
    """A collective without one of its members would never finish on a real machine either."""
    reduce = Operation.ALL_REDUCE
    trace = make_trace(((0, 1),), [(0, 0, reduce, 8), (0, 0, reduce, 8), (1, 0, reduce, 8)])
    with pytest.raises(TraceError) as error:
        match_requests(trace)
    assert str(error.value) == (
        "communication trace, group 0: rank 1 makes 1 requests, rank 0 makes 2\n  allowed: as many from every member"
    )


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (
            (1, 0, Operation.ALL_REDUCE, 9),
            "rank 1 asks group 0 for all_reduce of 9 B where rank 0 (row 0) asks for all_reduce of 8 B",
        ),
        (
            (1, 0, Operation.ALL_GATHER, 8),
            "rank 1 asks group 0 for all_gather of 8 B where rank 0 (row 0) asks for all_reduce of 8 B",
        ),
    ],
)
def test_members_that_disagree_are_named(other: Request, found: str) -> None:
    """Members of one collective must agree on what it is; NCCL hangs or corrupts where they do not."""
    with pytest.raises(TraceError, match=r"row 1") as error:
        match_requests(make_trace(((0, 1),), [(0, 0, Operation.ALL_REDUCE, 8), other]))
    assert error.value.mistakes[0].found == found


@pytest.mark.parametrize(("roots", "row", "root"), [([7, 8, 9], 0, 7), ([3, 3, 7], 2, 7)])
def test_the_first_root_outside_the_group_is_named(roots: list[int], row: int, root: int) -> None:
    """Of several, and where there is one only."""
    with pytest.raises(TraceError, match=f"row {row}: root {root}, which is not in group 0"):
        match_requests(make_broadcast(roots))


def test_a_send_and_a_receive_of_other_sizes_are_refused() -> None:
    """8 B are sent where 9 are awaited."""
    trace = make_trace(((0, 1),), [(0, 0, Operation.SEND, 8), (1, 0, Operation.RECEIVE, 9)])
    with pytest.raises(TraceError, match="9 B"):
        match_requests(replace(trace, peer_N=np.array([1, 0])))


def test_as_many_sends_as_receives_need_not_meet() -> None:
    """Rank 0 sends to 1, which receives from 2."""
    trace = make_trace(((0, 1, 2),), [(0, 0, Operation.SEND, 8), (1, 0, Operation.RECEIVE, 8)])
    with pytest.raises(TraceError, match="1 sends from rank 0 to 1 and 0 receives"):
        match_requests(replace(trace, peer_N=np.array([1, 2])))


@pytest.mark.parametrize("peer", [0, 2])
def test_a_message_to_oneself_or_out_of_the_group_is_refused(peer: int) -> None:
    """Rank 0 of the group of 0 and 1."""
    trace = make_trace(((0, 1),), [(0, 0, Operation.SEND, 8), (1, 0, Operation.RECEIVE, 8)])
    with pytest.raises(TraceError) as refused:
        match_requests(replace(trace, peer_N=np.array([peer, 0])))
    assert str(refused.value) == (
        f"communication trace, row 0: rank {peer} as the other end of rank 0's message\n"
        "  allowed: another member of group 0"
    )
