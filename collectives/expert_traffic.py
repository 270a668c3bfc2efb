"""Traffic of exchanges with experts: their messages, cut into slices, on the wires of a placement.

Messages inside a host cross NVLink, GPU to GPU; between hosts they take a connection for each pair of ranks, and rails
as `rails` says. What has no bytes moves nothing, and only passes on the wait.

Shapes: M messages of all groups, N transfers, K connections, D dependencies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.collectives.connections import cut, filled, ranges_of, take_turns
from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.collectives.expert_messages import Message
from fabrictune.collectives.plans import refuse_too_many
from fabrictune.collectives.rails import exit_ranks, rail_note
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.queue_pairs import make_queue_pairs


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Slices of messages between ranks."""

    source_N: IntArray  # rank
    destination_N: IntArray  # rank
    bytes_N: IntArray
    delay_ps_N: IntArray
    dependencies: Dependencies


def put_on_wires(
    groups: Sequence[tuple[Sequence[int], Sequence[Message]]], placement: Placement, options: ExpansionSpec
) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs and the transfers of groups, each its ranks and their messages; raises TraceError."""
    refuse_too_many(sum(message.num_slices for _, messages in groups for message in messages))
    rows = _slices(groups)
    source_N, destination_N = rows.source_N, rows.destination_N
    moves_N = rows.bytes_N > 0
    crosses_N = moves_N & (placement.host_R[source_N] != placement.host_R[destination_N])
    num_ranks = len(placement.host_R)
    key_K, connection = np.unique((source_N * num_ranks + destination_N)[crosses_N], return_inverse=True)
    source_K, destination_K = np.divmod(key_K, num_ranks)
    exit_K = exit_ranks(placement, source_K, destination_K, pxn=options.pxn)
    exit_N = filled(crosses_N, exit_K[connection])
    is_relayed_N = crosses_N & (exit_N != source_N)
    traffic = TrafficTrace(
        source_N=np.where(crosses_N, placement.nic_R[exit_N], source_N),
        destination_N=np.where(crosses_N, placement.nic_R[destination_N], destination_N),
        medium_N=np.where(crosses_N, Medium.FABRIC, np.where(moves_N, Medium.NVLINK, Medium.NONE)),
        qp_N=filled(crosses_N, connection),
        bytes_N=rows.bytes_N,
        start_ps_N=np.zeros_like(source_N),
        delay_ps_N=rows.delay_ps_N,
        operation_N=np.full_like(source_N, UNKNOWN),
        dependencies=rows.dependencies,
        relayed_from_N=np.where(is_relayed_N, source_N, UNKNOWN),
        relayed_to_N=np.where(is_relayed_N, exit_N, UNKNOWN),
        notes=rail_note(placement, source_K, destination_K, pxn=options.pxn),
    )
    num_qps = options.qps_per_connection
    if num_qps > 1:
        traffic = cut(traffic, num_qps) if options.qp_use == "split" else traffic
        traffic = replace(traffic, qp_N=take_turns(traffic.qp_N, num_qps))
    queue_pairs = make_queue_pairs(
        np.repeat(placement.nic_R[exit_K], num_qps),
        np.repeat(placement.nic_R[destination_K], num_qps),
        priority=options.priority,
    )
    return queue_pairs, traffic


def as_flows(queue_pairs: QueuePairs, traffic: TrafficTrace) -> TrafficTrace:
    """Return one transfer on each queue pair, of all its bytes, ready at time 0."""
    on_fabric_N = traffic.medium_N == Medium.FABRIC
    num_qps = len(queue_pairs)
    bytes_Q = np.zeros(num_qps, np.int64)
    np.add.at(bytes_Q, traffic.qp_N[on_fabric_N], traffic.bytes_N[on_fabric_N])
    zero_Q = np.zeros(num_qps, np.int64)
    return TrafficTrace(
        source_N=queue_pairs.source_nic_Q,
        destination_N=queue_pairs.destination_nic_Q,
        medium_N=np.full(num_qps, Medium.FABRIC, np.int64),
        qp_N=np.arange(num_qps),
        bytes_N=bytes_Q,
        start_ps_N=zero_Q,
        delay_ps_N=zero_Q,
        operation_N=np.full(num_qps, UNKNOWN, np.int64),
        dependencies=Dependencies.none(num_qps),
        notes=traffic.notes,
    )


def _slices(groups: Sequence[tuple[Sequence[int], Sequence[Message]]]) -> _Rows:
    """Return the slices of all messages, the first of each before the second of any, with what each waits for.

    What is ready at one time crosses NVLink in this order: whoever sends, sends all that it has in turn.
    """
    first_of_group = np.cumsum([0, *(len(messages) for _, messages in groups)]).tolist()
    of_group = [
        (ranks, message, first_of_group[number])
        for number, (ranks, messages) in enumerate(groups)
        for message in messages
    ]
    columns = np.array(
        [
            (ranks[message.sender], ranks[message.receiver], message.num_bytes, message.delay_ps, message.num_slices)
            for ranks, message, _ in of_group
        ],
        np.int64,
    ).reshape(-1, 5)
    waits_M1 = np.cumsum([0, *(len(message.waits) for _, message, _ in of_group)])
    wait_D = np.array([first + row for _, message, first in of_group for row in message.waits], np.int64)
    source_M, destination_M, bytes_M, delay_ps_M, slices_M = columns.T
    row_N = np.repeat(np.arange(len(columns)), slices_M)
    slice_N = ranges_of(np.zeros_like(slices_M), slices_M)
    order_N = np.argsort(slice_N, kind="stable")
    place_N = np.empty_like(order_N)
    place_N[order_N] = np.arange(len(order_N))
    row_N, slice_N = row_N[order_N], slice_N[order_N]
    waits = _waits_of_slices(Dependencies(offset_N1=waits_M1, row_D=wait_D), slices_M, row_N, slice_N)
    size_M, rest_M = np.divmod(bytes_M, slices_M)
    return _Rows(
        source_N=source_M[row_N],
        destination_N=destination_M[row_N],
        bytes_N=size_M[row_N] + (slice_N < rest_M[row_N]),
        delay_ps_N=delay_ps_M[row_N],
        dependencies=replace(waits, row_D=place_N[waits.row_D]),
    )


def _waits_of_slices(waits: Dependencies, slices_M: IntArray, row_N: IntArray, slice_N: IntArray) -> Dependencies:
    """Return what each slice waits for, in order of messages: its own of a message cut as often, else all of it."""
    num_waits = np.diff(waits.offset_N1)[row_N]
    awaited = waits.row_D[ranges_of(waits.offset_N1[row_N], num_waits)]
    slices, place = np.repeat(slices_M[row_N], num_waits), np.repeat(slice_N, num_waits)
    is_own = slices_M[awaited] == slices
    first_M = np.cumsum(slices_M) - slices_M
    count = np.where(is_own, 1, slices_M[awaited])
    so_far = np.concatenate([[0], np.cumsum(count)])
    return Dependencies(
        offset_N1=so_far[np.concatenate([[0], np.cumsum(num_waits)])],
        row_D=ranges_of(first_M[awaited] + np.where(is_own, place, 0), count),
    )
