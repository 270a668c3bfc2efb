"""Queue pair of each message: one connection for each direction of each edge of each channel of each group.

A connection has one queue pair or several, which its messages take in turn (NCCL's way since 2.20). Where messages are
to be split over all of them (NCCL's way before), they are first cut into as many parts; a part is a row of its own,
and what waits for the message waits for every part.

Source: NCCL, NCCL_IB_QPS_PER_CONNECTION and NCCL_IB_SPLIT_DATA_ON_QPS.

Shapes: R rows, K connections, D dependencies.
"""

from dataclasses import dataclass, replace

import numpy as np

from fabrictune.collectives.messages import MessageTable
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.traces import UNKNOWN, Dependencies


@dataclass(frozen=True, kw_only=True)
class Connections:
    """K connections between ranks, and the one each row takes."""

    source_K: IntArray  # rank
    destination_K: IntArray  # rank
    connection_R: IntArray  # UNKNOWN for rows that need none


def connect(messages: MessageTable, needs_connection_R: BoolArray) -> Connections:
    """Return a connection for each (group, channel, source, destination) among the rows that need one, in order."""
    group, channel, source, destination = (
        column_R[needs_connection_R]
        for column_R in (messages.group_R, messages.channel_R, messages.source_R, messages.destination_R)
    )
    stride = 1 + max(source.max(initial=0), destination.max(initial=0))
    edge = ((group * (1 + channel.max(initial=0)) + channel) * stride + source) * stride + destination
    key_K, connection = np.unique(edge, return_inverse=True)
    connection_R = np.full(len(messages), UNKNOWN, np.int64)
    connection_R[needs_connection_R] = connection
    return Connections(source_K=key_K // stride % stride, destination_K=key_K % stride, connection_R=connection_R)


def take_turns(connection_R: IntArray, qps_per_connection: int) -> IntArray:
    """Return each row's queue pair where the messages of a connection take its queue pairs in turn."""
    order_R = np.argsort(connection_R, kind="stable")
    sorted_R = connection_R[order_R]
    turn_R = np.empty(len(connection_R), np.int64)
    turn_R[order_R] = np.arange(len(connection_R)) - np.searchsorted(sorted_R, sorted_R)
    return np.where(connection_R == UNKNOWN, UNKNOWN, connection_R * qps_per_connection + turn_R % qps_per_connection)


def cut(messages: MessageTable, num_parts: int) -> MessageTable:
    """Return the rows with each message cut into parts of at least a byte, as equal as can be, one after another."""
    parts_R = np.clip(messages.bytes_R, 1, num_parts)
    row, part = np.repeat(np.arange(len(messages)), parts_R), _ranges(np.zeros_like(parts_R), parts_R)
    size_R, rest_R = np.divmod(messages.bytes_R, parts_R)
    return replace(
        messages,
        request_R=messages.request_R[row],
        group_R=messages.group_R[row],
        channel_R=messages.channel_R[row],
        source_R=messages.source_R[row],
        destination_R=messages.destination_R[row],
        bytes_R=size_R[row] + (part < rest_R[row]),
        delay_ps_R=messages.delay_ps_R[row],
        dependencies=_wait_for_parts(messages.dependencies, parts_R, row),
    )


def _wait_for_parts(dependencies: Dependencies, parts_R: IntArray, row: IntArray) -> Dependencies:
    """Return the dependencies of the parts of the rows `row`, each on every part of what the row waited for."""
    num_waits = np.diff(dependencies.offset_N1)[row]
    waited_for = dependencies.row_D[_ranges(dependencies.offset_N1[row], num_waits)]
    first_part_R = np.cumsum(parts_R) - parts_R
    parts_so_far = np.concatenate([[0], np.cumsum(parts_R[waited_for])])
    return Dependencies(
        offset_N1=parts_so_far[np.concatenate([[0], np.cumsum(num_waits)])],
        row_D=_ranges(first_part_R[waited_for], parts_R[waited_for]),
    )


def _ranges(first: IntArray, length: IntArray) -> IntArray:
    """Return the ranges first, first + 1, ... of each length, one after another."""
    begin = np.cumsum(length) - length
    return np.repeat(first - begin, length) + np.arange(length.sum())
