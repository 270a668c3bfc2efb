"""Requests of a graph of work and communication, in an order in which each follows what it waits for.

Nodes that wait for no other come as they are numbered; one that becomes free comes at once, so that chains stay
together. A request waits for the requests that lie before it on every way through the graph, and for the longest work
since.

Shapes: N nodes by their numbers, W waits, R requests.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import Dependencies
from fabrictune.foundation.units import PS_PER_US

MAX_PS = 2**62  # of work
MAX_JOINED = 20_000_000  # waits of a rank's requests, and of its nodes where ways meet


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Nodes by their ids; the waits of node n are `wait_W[offset_N1[n]:offset_N1[n + 1]]`."""

    where_of_row: Callable[[int], str]  # the place that a mistake names
    shorter: str  # what to do about a graph that is too large
    row_N: IntArray  # of the file
    offset_N1: IntArray
    wait_W: IntArray

    def where(self, node: int) -> str:
        """Return the place of a node that a mistake names."""
        return self.where_of_row(int(self.row_N[node]))

    def followers(self) -> tuple[list[int], list[int]]:
        """Return the offsets of each node's followers, and the followers."""
        order_W = np.argsort(self.wait_W, kind="stable")
        follower_W = np.repeat(np.arange(len(self.row_N)), np.diff(self.offset_N1))[order_W]
        return np.searchsorted(self.wait_W[order_W], np.arange(len(self.row_N) + 1)).tolist(), follower_W.tolist()


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """R requests in order."""

    node_R: IntArray
    work_ps_R: IntArray  # before each
    waits: Dependencies  # rows of the trace


def requests_in_order(graph: Graph, is_request_N: BoolArray, duration_ps_N: IntArray, first_row: int) -> Ordered:
    """Return the requests among the nodes, the first of which is row `first_row` of the trace; raises TraceError."""
    offset_of, wait_of = graph.offset_N1.tolist(), graph.wait_W.tolist()
    is_request, duration_ps = is_request_N.tolist(), duration_ps_N.tolist()
    before: list[tuple[int, ...]] = [()] * len(is_request)  # the requests before a node's end, in order
    worked_ps = [0] * len(is_request)  # the longest work since
    requests, work_ps_R = array("q"), array("q")
    offsets, rows = array("q", [0]), array("q")
    num_joined = 0
    for node in _order(graph):
        begin, end = offset_of[node], offset_of[node + 1]
        if end == begin + 1:
            waits, work_ps = before[wait_of[begin]], worked_ps[wait_of[begin]]
        else:
            ways = wait_of[begin:end]
            num_joined += sum(len(before[way]) for way in ways)
            if num_joined > MAX_JOINED:
                _refuse(graph, node, f"more than {MAX_JOINED:,} waits where ways meet, up to here")
            waits = tuple(sorted({row for way in ways for row in before[way]}))
            work_ps = max((worked_ps[way] for way in ways), default=0)
        if not is_request[node]:
            before[node], worked_ps[node] = waits, work_ps + duration_ps[node]
            continue
        before[node] = (first_row + len(requests),)
        if work_ps > MAX_PS:
            _refuse(graph, node, f"work of {work_ps // PS_PER_US} us before it")
        requests.append(node)
        work_ps_R.append(work_ps)
        rows.extend(waits)
        offsets.append(len(rows))
        if len(rows) > MAX_JOINED:
            _refuse(graph, node, f"more than {MAX_JOINED:,} waits, up to here")
    return Ordered(
        node_R=np.frombuffer(requests, np.int64),
        work_ps_R=np.frombuffer(work_ps_R, np.int64),
        waits=Dependencies(offset_N1=np.frombuffer(offsets, np.int64), row_D=np.frombuffer(rows, np.int64)),
    )


def _refuse(graph: Graph, node: int, found: str) -> NoReturn:
    raise TraceError(Mistake(where=graph.where(node), found=found, next_step=graph.shorter))


def _order(graph: Graph) -> list[int]:
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
        first = min((node for node, count in enumerate(num_left) if count), key=lambda node: int(graph.row_N[node]))
        found = "a node that waits for itself, through others"
        raise TraceError(Mistake(where=graph.where(first), found=found))
    return order
