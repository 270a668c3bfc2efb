"""Schedules in GOAL, as LogGOPSim and ATLAHS take them: work, sends and receives of each rank, and their order.

`requires` waits for the end of another line of the rank, `irequires` for its beginning. Work is in nanoseconds. A send
meets the receive of the same two ranks and the same tag, in the order of each rank's schedule. Where tags of two ranks
come in one order on both sides they share a group of the trace, else each tag has one of its own.

Source: spcl/LogGOPSim; Hoefler et al., "Group operation assembly language - a flexible way to express collective
communication", ICPP 2009.
Left out: which core and which NIC a line takes (`cpu`, `nic`), counted in a note.

Shapes: L lines of a rank, N nodes, R requests.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fabrictune.collectives.traces.builder import TraceBuilder
from fabrictune.collectives.traces.goal_lines import SHORTER, GoalFile, Schedule
from fabrictune.collectives.traces.request_graph import Graph, Ordered, requests_in_order
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS

_HEAD = re.compile(rb"\A\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*num_ranks[ \t]+\d+\s", re.DOTALL)

Edge = tuple[int, int]  # the rank that sends, and the one that receives


@dataclass(frozen=True, kw_only=True)
class _Requests:
    """The requests of a rank in order, as columns of R."""

    rank: int
    operation_R: IntArray
    bytes_R: IntArray
    peer_R: IntArray
    tag_R: IntArray
    ordered: Ordered


def is_goal(path: Path) -> bool:
    """Return whether the file begins as a schedule."""
    return _HEAD.match(read_head(path, 2**12)) is not None


def read_goal(path: Path) -> CommTrace:
    """Return the messages of all ranks; raises TraceError with file and line."""
    reading = GoalFile(path)
    requests: dict[int, _Requests] = {}
    num_rows = 0
    for schedule in reading.schedules():
        if schedule.rank in requests:
            raise TraceError(Mistake(where=str(path), found=f"a second schedule of rank {schedule.rank}"))
        requests[schedule.rank] = _requests(path, schedule, num_rows)
        num_rows += len(requests[schedule.rank].operation_R)
    if not num_rows:
        raise TraceError(Mistake(where=str(path), found="no message", allowed="a rank that sends or receives"))
    builder, crossing = TraceBuilder(), _crossing(requests.values())
    to, of = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for sender, receiver in crossing:
        to[sender].append(receiver)
        of[receiver].append(sender)
    for own in requests.values():
        _add(builder, own, to[own.rank], of[own.rank])
    return builder.finish(tuple(reading.notes()))


def _requests(path: Path, schedule: Schedule, first_row: int) -> _Requests:
    """Return a rank's messages in order. A line whose beginning is waited for has a node before it, of no work."""
    size_L = np.frombuffer(schedule.size, np.int64)
    operation_L = np.frombuffer(schedule.operation, np.int64)
    begun = sorted({awaited for _, awaited, is_begin in schedule.waits if is_begin})
    begin_of = {line: len(size_L) + place for place, line in enumerate(begun)}
    waits = set(begin_of.items())
    for line, awaited, is_begin in schedule.waits:
        waits.add((begin_of.get(line, line), begin_of[awaited] if is_begin else awaited))
    pairs = np.array(sorted(waits), np.int64).reshape(-1, 2)
    num_nodes = len(size_L) + len(begun)
    line_of = [*range(len(size_L)), *begun]
    graph = Graph(
        where_of_row=partial(_where, path, schedule.number, line_of),
        shorter=SHORTER,
        row_N=np.arange(num_nodes),
        offset_N1=np.searchsorted(pairs[:, 0], np.arange(num_nodes + 1)),
        wait_W=pairs[:, 1],
    )
    is_request_N = np.zeros(num_nodes, bool)
    is_request_N[: len(size_L)] = operation_L != UNKNOWN
    work_ps_N = np.zeros(num_nodes, np.int64)
    work_ps_N[: len(size_L)] = np.where(operation_L == UNKNOWN, size_L * PS_PER_NS, 0)
    ordered = requests_in_order(graph, is_request_N, work_ps_N, first_row)
    columns = (operation_L, size_L, np.frombuffer(schedule.peer, np.int64), np.frombuffer(schedule.tag, np.int64))
    operation_R, bytes_R, peer_R, tag_R = (column[ordered.node_R] for column in columns)
    return _Requests(
        rank=schedule.rank, operation_R=operation_R, bytes_R=bytes_R, peer_R=peer_R, tag_R=tag_R, ordered=ordered
    )


def _where(path: Path, numbers: Sequence[int], line_of: Sequence[int], node: int) -> str:
    return f"{path}:{numbers[line_of[node]]}"


def _crossing(requests: Iterable[_Requests]) -> frozenset[Edge]:
    """Return the edges on which tags come in another order where they are sent than where they are received."""
    sent: dict[Edge, IntArray] = {}
    received: dict[Edge, IntArray] = {}
    for own in requests:
        is_send_R = own.operation_R == Operation.SEND
        sent |= {(own.rank, peer): tags for peer, tags in _tags_by_peer(own, is_send_R)}
        received |= {(peer, own.rank): tags for peer, tags in _tags_by_peer(own, ~is_send_R)}
    return frozenset(edge for edge in sent.keys() & received.keys() if _is_reordered(sent[edge], received[edge]))


def _tags_by_peer(own: _Requests, is_own_R: BoolArray) -> Iterator[tuple[int, IntArray]]:
    """Yield the tags of some requests for each peer, in order."""
    peer_M, tag_M = own.peer_R[is_own_R], own.tag_R[is_own_R]
    order_M = np.argsort(peer_M, kind="stable")
    peers, first = np.unique(peer_M[order_M], return_index=True)
    if len(peers):
        yield from zip(peers.tolist(), np.split(tag_M[order_M], first[1:]), strict=True)


def _is_reordered(sent_M: IntArray, received_M: IntArray) -> bool:
    is_same = np.array_equal(sent_M, received_M)
    return not is_same and np.array_equal(np.sort(sent_M), np.sort(received_M))


def _add(builder: TraceBuilder, own: _Requests, to: Sequence[int], of: Sequence[int]) -> None:
    """Add a rank's requests to the trace; its tags to some peers, and those of some, come in another order there."""
    is_send_R = own.operation_R == Operation.SEND
    crosses_R = np.where(is_send_R, np.isin(own.peer_R, to), np.isin(own.peer_R, of))
    label_R = np.where(crosses_R, own.tag_R + 1, 0)
    pairs, group_R = np.unique(np.stack([own.peer_R, label_R], axis=1), axis=0, return_inverse=True)
    peers, labels = pairs[:, 0].tolist(), pairs[:, 1].tolist()
    builder.add_rank(
        own.rank,
        {
            "operation": own.operation_R,
            "peer": own.peer_R,
            "bytes": own.bytes_R,
            "compute_before_ps": own.ordered.work_ps_R,
        },
        groups=[(min(own.rank, peer), max(own.rank, peer)) for peer in peers],
        group_R=group_R.ravel(),
        tags=_named(own.tag_R),
        waits=own.ordered.waits,
        labels=labels,
    )


def _named(tag_R: IntArray) -> list[str]:
    """Return the tags in words; equal ones are one text."""
    tags, number_R = np.unique(tag_R, return_inverse=True)
    names = [f"tag {tag}" for tag in tags.tolist()]
    return [names[number] for number in number_R.ravel().tolist()]
