"""Requests of a Chakra trace in an order in which each follows what it waits for, with the work before it.

Nodes that wait for no other come by their ids; one that becomes free comes at once, so that chains stay together. A
request waits for the requests that lie before it on every way through the graph, and for the longest work since.

Shapes: N nodes by their ids, W waits, R requests.
"""

from array import array
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.traces.builder import TraceBuilder
from fabrictune.collectives.traces.chakra_nodes import SHORTER, Nodes
from fabrictune.collectives.traces.chakra_requests import Requests
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, Dependencies
from fabrictune.foundation.units import PS_PER_US

MAX_PS = 2**62  # of work
MAX_JOINED = 20_000_000  # waits of a rank's requests, and of its nodes where ways meet


@dataclass(frozen=True, kw_only=True)
class _Graph:
    """Nodes by their ids; the waits of node n are `wait_W[offset_N1[n]:offset_N1[n + 1]]`."""

    row_N: IntArray  # of the file
    offset_N1: IntArray
    wait_W: IntArray

    def followers(self) -> tuple[list[int], list[int]]:
        """Return the offsets of each node's followers, and the followers."""
        order_W = np.argsort(self.wait_W, kind="stable")
        follower_W = np.repeat(np.arange(len(self.row_N)), np.diff(self.offset_N1))[order_W]
        return np.searchsorted(self.wait_W[order_W], np.arange(len(self.row_N) + 1)).tolist(), follower_W.tolist()


def add_in_order(builder: TraceBuilder, nodes: Nodes, requests: Requests, rank: int) -> int:
    """Add a rank's requests to a trace; return how many callers of a profile were left out. Raises TraceError."""
    graph, num_callers = _graph(nodes)
    is_request_N = (requests.operation_N != UNKNOWN)[graph.row_N]
    ordered = _walk(graph, nodes, is_request_N, _durations(nodes, requests)[graph.row_N], len(builder))
    row_R = graph.row_N[ordered.node_R]
    builder.add_rank(
        rank,
        {
            "operation": requests.operation_N[row_R],
            "peer": requests.peer_N[row_R],
            "bytes": requests.bytes_N[row_R],
            "compute_before_ps": ordered.work_ps_R,
        },
        groups=requests.groups,
        group_R=requests.group_N[row_R],
        tags=nodes.names(row_R),
        waits=ordered.waits,
    )
    return num_callers


def _durations(nodes: Nodes, requests: Requests) -> IntArray:
    """Return how long each node works; 0 for requests. Raises TraceError."""
    is_work_N, exact_N = requests.operation_N == UNKNOWN, nodes.numbers["compute_ps"]
    is_too_long_N = is_work_N & (exact_N < 0) & (nodes.duration_micros_N >= MAX_PS // PS_PER_US)
    if is_too_long_N.any():
        row, allowed = int(np.argmax(is_too_long_N)), f"less than {MAX_PS // PS_PER_US} us"
        found = f"work of {nodes.duration_micros_N[row]} us"
        raise TraceError(Mistake(where=nodes.where(row), found=found, allowed=allowed))
    known_N = np.where(is_work_N & (exact_N < 0), nodes.duration_micros_N, 0).astype(np.int64) * PS_PER_US
    return np.where(is_work_N & (exact_N >= 0), exact_N, known_N)


def _graph(nodes: Nodes) -> tuple[_Graph, int]:
    """Return the graph, without the callers of a profile, and their number. Raises TraceError."""
    row_N = np.argsort(nodes.id_N, kind="stable")
    id_N = nodes.id_N[row_N]
    is_twice_N = np.concatenate([[False], id_N[1:] == id_N[:-1]])
    if is_twice_N.any():
        row = int(row_N[is_twice_N].min())
        raise TraceError(Mistake(where=nodes.where(row), found="a node of the same id before"))
    node_N = np.empty_like(row_N)
    node_N[row_N] = np.arange(len(row_N))
    waiting_W, id_W, num_callers = _waits(nodes, node_N)
    wait_W = np.searchsorted(id_N, id_W)
    is_known_W = wait_W < len(id_N)
    is_known_W[is_known_W] = id_N[wait_W[is_known_W]] == id_W[is_known_W]
    if not is_known_W.all():
        missing = np.flatnonzero(~is_known_W)
        first = missing[np.argmin(row_N[waiting_W[missing]])]
        found = f"a wait for node {id_W[first]}, which there is not"
        raise TraceError(Mistake(where=nodes.where(int(row_N[waiting_W[first]])), found=found))
    offset_N1 = np.searchsorted(waiting_W, np.arange(len(row_N) + 1))
    return _Graph(row_N=row_N, offset_N1=offset_N1, wait_W=wait_W), num_callers


def _waits(nodes: Nodes, node_N: IntArray) -> tuple[IntArray, NDArray[np.uint64], int]:
    """Return who waits for whom, each once and in order, without the callers of a profile, and how many these are."""
    waiting_W = node_N[nodes.wait_node_W]
    order_W = np.lexsort((nodes.is_caller_W, nodes.wait_id_W, waiting_W))
    waiting_W, id_W, is_caller_W = waiting_W[order_W], nodes.wait_id_W[order_W], nodes.is_caller_W[order_W]
    is_kept_W = np.ones(len(order_W), bool)
    is_kept_W[1:] = (waiting_W[1:] != waiting_W[:-1]) | (id_W[1:] != id_W[:-1])
    num_callers = 0
    if nodes.is_of_profile_N.any():
        num_callers = int((is_kept_W & is_caller_W).sum())
        is_kept_W &= ~is_caller_W
    return waiting_W[is_kept_W], id_W[is_kept_W], num_callers


def _order(graph: _Graph, nodes: Nodes) -> list[int]:
    """Return the nodes so that each follows those it waits for; raises TraceError for a circle."""
    num_left = np.diff(graph.offset_N1).tolist()
    first_of, follower_of = graph.followers()
    ready = [node for node in range(len(num_left) - 1, -1, -1) if not num_left[node]]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        freed = []
        for follower in follower_of[first_of[node] : first_of[node + 1]]:
            num_left[follower] -= 1
            if not num_left[follower]:
                freed.append(follower)
        ready += reversed(freed)
    if len(order) < len(num_left):
        row = min(int(graph.row_N[node]) for node, count in enumerate(num_left) if count)
        found = "a node that waits for itself, through others"
        raise TraceError(Mistake(where=nodes.where(row), found=found))
    return order


@dataclass(frozen=True, kw_only=True)
class _Ordered:
    """R requests in order."""

    node_R: IntArray
    work_ps_R: IntArray  # before each
    waits: Dependencies  # rows of the trace


def _walk(graph: _Graph, nodes: Nodes, is_request_N: BoolArray, duration_ps_N: IntArray, first_row: int) -> _Ordered:
    """Return the requests in order; raises TraceError."""
    offset_of, wait_of = graph.offset_N1.tolist(), graph.wait_W.tolist()
    is_request, duration_ps = is_request_N.tolist(), duration_ps_N.tolist()
    before: list[tuple[int, ...]] = [()] * len(is_request)  # the requests before a node's end, in order
    worked_ps = [0] * len(is_request)  # the longest work since
    requests, work_ps_R = array("q"), array("q")
    offsets, rows = array("q", [0]), array("q")
    num_joined = 0
    for node in _order(graph, nodes):
        begin, end = offset_of[node], offset_of[node + 1]
        if end == begin + 1:
            waits, work_ps = before[wait_of[begin]], worked_ps[wait_of[begin]]
        else:
            ways = wait_of[begin:end]
            num_joined += sum(len(before[way]) for way in ways)
            if num_joined > MAX_JOINED:
                _refuse(nodes, graph, node, f"more than {MAX_JOINED:,} waits where ways meet, up to here")
            waits = tuple(sorted({row for way in ways for row in before[way]}))
            work_ps = max((worked_ps[way] for way in ways), default=0)
        if not is_request[node]:
            before[node], worked_ps[node] = waits, work_ps + duration_ps[node]
            continue
        before[node] = (first_row + len(requests),)
        if work_ps > MAX_PS:
            _refuse(nodes, graph, node, f"work of {work_ps // PS_PER_US} us before it")
        requests.append(node)
        work_ps_R.append(work_ps)
        rows.extend(waits)
        offsets.append(len(rows))
        if len(rows) > MAX_JOINED:
            _refuse(nodes, graph, node, f"more than {MAX_JOINED:,} waits, up to here")
    return _Ordered(
        node_R=np.frombuffer(requests, np.int64),
        work_ps_R=np.frombuffer(work_ps_R, np.int64),
        waits=Dependencies(offset_N1=np.frombuffer(offsets, np.int64), row_D=np.frombuffer(rows, np.int64)),
    )


def _refuse(nodes: Nodes, graph: _Graph, node: int, found: str) -> NoReturn:
    where = nodes.where(int(graph.row_N[node]))
    raise TraceError(Mistake(where=where, found=found, next_step=SHORTER))
