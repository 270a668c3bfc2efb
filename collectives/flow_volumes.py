"""Volume of each connection of a trace, without writing its messages out: a flow a queue pair.

The messages of a schedule are added up once for each edge, and the sums repeated for every collective that follows it.
So a job of any number of groups costs what its edges cost, and an analysis that asks for paths and loads only, or for
fluid rates, needs no more.

Shapes: E edges of a schedule, C collectives, K connections, Q queue pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.expansion import ExpansionSpec, check_placement
from fabrictune.collectives.plans import CollectivePlan, make_plans
from fabrictune.collectives.rails import exit_nics
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Medium, TrafficTrace
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.queue_pairs import make_queue_pairs


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Volume from one member to another on one channel of one schedule."""

    sender_E: IntArray  # member
    receiver_E: IntArray  # member
    channel_E: IntArray
    bytes_CE: IntArray


def expand_to_flows(
    trace: CommTrace, placement: Placement, fabric: Fabric, options: ExpansionSpec
) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs of a trace and one transfer on each, of all its bytes; raises TraceError.

    The queue pairs are those of `expand`, in the same order. Everything is ready at time 0, and what stays inside a
    host is left out.
    """
    check_placement(trace, placement, fabric)
    plans = make_plans(trace, placement.host_R, options.algorithm, options.slicing, is_written_out=False)
    source_K, destination_K, bytes_K = _connections(trace, placement, plans)
    num_qps = options.qps_per_connection
    nic_K, far_nic_K = exit_nics(placement, source_K, destination_K), placement.nic_R[destination_K]
    source_Q, destination_Q = np.repeat(nic_K, num_qps), np.repeat(far_nic_K, num_qps)
    size_K, rest_K = np.divmod(bytes_K, num_qps)
    zero_Q = np.zeros(len(source_Q), np.int64)
    traffic = TrafficTrace(
        source_N=source_Q,
        destination_N=destination_Q,
        medium_N=zero_Q + Medium.FABRIC,
        qp_N=np.arange(len(source_Q)),
        bytes_N=(size_K[:, None] + (np.arange(num_qps) < rest_K[:, None])).ravel(),
        start_ps_N=zero_Q,
        delay_ps_N=zero_Q,
        operation_N=zero_Q + UNKNOWN,
        dependencies=Dependencies.none(len(source_Q)),
        notes=trace.notes,
    )
    return make_queue_pairs(source_Q, destination_Q, priority=options.priority), traffic


def _connections(
    trace: CommTrace, placement: Placement, plans: Sequence[CollectivePlan]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return source rank, destination rank and bytes of each connection between hosts, as `connections` orders them."""
    columns: list[IntArray] = [np.zeros((5, 0), np.int64)]
    for plan in plans:
        edges = edge_volumes(plan)
        rank_Cn = trace.rank_N[plan.batch.request_Cn]
        rows = np.broadcast_arrays(
            plan.batch.group_C[:, None],
            edges.channel_E,
            rank_Cn[:, edges.sender_E],
            rank_Cn[:, edges.receiver_E],
            edges.bytes_CE,
        )
        columns.append(np.stack([row.ravel() for row in rows]))
    group, channel, source, destination, num_bytes = np.concatenate(columns, axis=1)
    crosses = (placement.host_R[source] != placement.host_R[destination]) & (num_bytes > 0)
    keys, connection = np.unique(
        np.stack([group, channel, source, destination])[:, crosses], axis=1, return_inverse=True
    )
    bytes_K = np.zeros(keys.shape[1], np.int64)
    np.add.at(bytes_K, connection.ravel(), num_bytes[crosses])
    return keys[2], keys[3], bytes_K


def edge_volumes(plan: CollectivePlan) -> Edges:
    """Return the bytes of every edge of a plan's schedule, for each of its collectives."""
    schedule = plan.schedule
    keys, edge_M = np.unique(
        np.stack([schedule.channel_M, schedule.sender_M, schedule.receiver_M]), axis=1, return_inverse=True
    )
    sizes, size_C = np.unique(plan.batch.bytes_C, return_inverse=True)
    bytes_UE = np.zeros((len(sizes), keys.shape[1]), np.int64)
    for row, size in zip(bytes_UE, sizes.tolist(), strict=True):
        np.add.at(row, edge_M.ravel(), schedule.bytes_M(size))
    return Edges(channel_E=keys[0], sender_E=keys[1], receiver_E=keys[2], bytes_CE=bytes_UE[size_C.ravel()])
