"""Requests of a Chakra trace, in the order of its graph.

Shapes: N nodes by their ids, W waits, R requests.
"""

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.traces.builder import TraceBuilder
from fabrictune.collectives.traces.chakra_nodes import SHORTER, Nodes
from fabrictune.collectives.traces.chakra_requests import Requests
from fabrictune.collectives.traces.request_graph import MAX_PS, Graph, requests_in_order
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.foundation.units import PS_PER_US


def add_in_order(builder: TraceBuilder, nodes: Nodes, requests: Requests, rank: int) -> int:
    """Add a rank's requests to a trace; return how many callers of a profile were left out. Raises TraceError."""
    graph, num_callers = _graph(nodes)
    is_request_N = (requests.operation_N != UNKNOWN)[graph.row_N]
    ordered = requests_in_order(graph, is_request_N, _durations(nodes, requests)[graph.row_N], len(builder))
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


def _graph(nodes: Nodes) -> tuple[Graph, int]:
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
    return Graph(
        where_of_row=nodes.where, shorter=SHORTER, row_N=row_N, offset_N1=offset_N1, wait_W=wait_W
    ), num_callers


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
