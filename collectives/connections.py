"""Queue pair of each message: one connection for each direction of each edge of each channel of each group.

A connection has one queue pair or several, which its messages take in turn (NCCL's way since 2.20). Where messages are
to be split over all of them (NCCL's way before), they are first cut into as many parts; a part is a row of its own,
and what waits for the message waits for every part.

Source: NCCL, NCCL_IB_QPS_PER_CONNECTION and NCCL_IB_SPLIT_DATA_ON_QPS.

Shapes: N rows, K connections, C collectives, E edges, D dependencies.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.collectives.messages import Edges
from fabrictune.collectives.request_matching import Batch
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, TrafficTrace


@dataclass(frozen=True, kw_only=True)
class Connections:
    """K connections between ranks of different hosts."""

    source_K: IntArray  # rank
    destination_K: IntArray  # rank
    bytes_K: IntArray
    connection_CE: tuple[IntArray, ...]  # of every edge of each batch; UNKNOWN for edges that need none


def connect(trace: CommTrace, host_R: IntArray, parts: Iterable[tuple[Batch, Edges, IntArray]]) -> Connections:
    """Return a connection for each (group, channel, source, destination) that sends between hosts, in that order.

    Each part is a batch, the edges of its schedule, and the bytes of its collectives over each, shape (C, E).
    """
    num_ranks, parts = len(host_R), list(parts)
    num_channels = 1 + max((int(edges.channel_E.max(initial=0)) for _, edges, _ in parts), default=0)
    keys, sizes, placed = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    for batch, edges, bytes_CE in parts:
        rank_Cn = trace.rank_N[batch.request_Cn]
        source_CE, destination_CE = rank_Cn[:, edges.sender_E], rank_Cn[:, edges.receiver_E]
        crosses_CE = (host_R[source_CE] != host_R[destination_CE]) & (bytes_CE > 0)
        key_CE = (batch.group_C[:, None] * num_channels + edges.channel_E) * num_ranks + source_CE
        keys.append((key_CE * num_ranks + destination_CE)[crosses_CE])
        sizes.append(bytes_CE[crosses_CE])
        placed.append(crosses_CE)
    key_K, connection = np.unique(np.concatenate(keys), return_inverse=True)
    bytes_K = np.zeros(len(key_K), np.int64)
    np.add.at(bytes_K, connection, np.concatenate(sizes))
    ends = np.cumsum([len(part) for part in sizes])
    return Connections(
        source_K=key_K // num_ranks % num_ranks,
        destination_K=key_K % num_ranks,
        bytes_K=bytes_K,
        connection_CE=tuple(
            filled(crosses_CE, connection[begin:end])
            for crosses_CE, begin, end in zip(placed, ends, ends[1:], strict=False)
        ),
    )


def filled(is_set: BoolArray, values: IntArray) -> IntArray:
    """Return the values where they belong, and UNKNOWN elsewhere."""
    filled = np.full(is_set.shape, UNKNOWN, np.int64)
    filled[is_set] = values
    return filled


def take_turns(connection_N: IntArray, qps_per_connection: int) -> IntArray:
    """Return each row's queue pair where the messages of a connection take its queue pairs in turn."""
    order_N = np.argsort(connection_N, kind="stable")
    sorted_N = connection_N[order_N]
    turn_N = np.empty(len(connection_N), np.int64)
    turn_N[order_N] = np.arange(len(connection_N)) - np.searchsorted(sorted_N, sorted_N)
    return np.where(connection_N == UNKNOWN, UNKNOWN, connection_N * qps_per_connection + turn_N % qps_per_connection)


def cut(traffic: TrafficTrace, num_parts: int) -> TrafficTrace:
    """Return the rows with each message cut into parts of at least a byte, as equal as can be, one after another."""
    parts_N = np.clip(traffic.bytes_N, 1, num_parts)
    row, part = np.repeat(np.arange(len(traffic)), parts_N), ranges_of(np.zeros_like(parts_N), parts_N)
    size_N, rest_N = np.divmod(traffic.bytes_N, parts_N)
    return replace(
        traffic,
        source_N=traffic.source_N[row],
        destination_N=traffic.destination_N[row],
        medium_N=traffic.medium_N[row],
        relayed_from_N=traffic.relayed_from_N[row],
        relayed_to_N=traffic.relayed_to_N[row],
        qp_N=traffic.qp_N[row],
        bytes_N=size_N[row] + (part < rest_N[row]),
        start_ps_N=traffic.start_ps_N[row],
        delay_ps_N=traffic.delay_ps_N[row],
        operation_N=traffic.operation_N[row],
        dependencies=_wait_for_parts(traffic.dependencies, parts_N, row),
        jobs=tuple(replace(job, end=len(row)) for job in traffic.jobs),
    )


def _wait_for_parts(dependencies: Dependencies, parts_N: IntArray, row: IntArray) -> Dependencies:
    """Return the dependencies of the parts of the rows `row`, each on every part of what the row waited for."""
    num_waits = np.diff(dependencies.offset_N1)[row]
    waited_for = dependencies.row_D[ranges_of(dependencies.offset_N1[row], num_waits)]
    first_part_N = np.cumsum(parts_N) - parts_N
    parts_so_far = np.concatenate([[0], np.cumsum(parts_N[waited_for])])
    return Dependencies(
        offset_N1=parts_so_far[np.concatenate([[0], np.cumsum(num_waits)])],
        row_D=ranges_of(first_part_N[waited_for], parts_N[waited_for]),
    )


def ranges_of(first: IntArray, length: IntArray) -> IntArray:
    """Return the ranges first, first + 1, ... of each length, one after another."""
    begin = np.cumsum(length) - length
    return np.repeat(first - begin, length) + np.arange(length.sum())
