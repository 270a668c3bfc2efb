"""Volume of each connection of a trace, without writing its messages out: a flow a queue pair.

The messages of a schedule are added up once for each edge, and a group's collectives that follow it are one sum.
So a job of any number of groups costs what its edges cost, and an analysis that asks for paths and loads only, or for
fluid rates, needs no more.

Shapes: E edges of a schedule, C collectives, S sums of them, K connections, Q queue pairs.
"""

from dataclasses import replace

import numpy as np

from fabrictune.collectives.connections import connect
from fabrictune.collectives.expansion import ExpansionSpec, check_placement
from fabrictune.collectives.messages import Edges, bytes_of_edges, edges_of
from fabrictune.collectives.plans import CollectivePlan, make_plans
from fabrictune.collectives.rails import exit_ranks, rail_note
from fabrictune.collectives.request_matching import Batch
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Medium, TrafficTrace
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.queue_pairs import make_queue_pairs


def expand_to_flows(
    trace: CommTrace, placement: Placement, fabric: Fabric, options: ExpansionSpec
) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs of a trace and one transfer on each, of all its bytes; raises TraceError.

    The queue pairs are those of `expand`, in the same order. Everything is ready at time 0, and what stays inside a
    host is left out.
    """
    check_placement(trace, placement, fabric)
    plans = make_plans(trace, placement.host_R, options.collective, options.slicing, is_written_out=False)
    connections = connect(trace, placement.host_R, (_volumes(trace, plan, len(placement.nic_R)) for plan in plans))
    source_K, destination_K, bytes_K = connections.source_K, connections.destination_K, connections.bytes_K
    num_qps = options.qps_per_connection
    nic_K = placement.nic_R[exit_ranks(placement, source_K, destination_K, pxn=options.pxn)]
    far_nic_K = placement.nic_R[destination_K]
    source_Q, destination_Q = np.repeat(nic_K, num_qps), np.repeat(far_nic_K, num_qps)
    size_K, rest_K = np.divmod(bytes_K, num_qps)
    zero_Q = np.zeros(len(source_Q), np.int64)
    traffic = TrafficTrace(
        source_N=source_Q,
        destination_N=destination_Q,
        medium_N=np.full_like(zero_Q, Medium.FABRIC),
        qp_N=np.arange(len(source_Q)),
        bytes_N=(size_K[:, None] + (np.arange(num_qps) < rest_K[:, None])).ravel(),
        start_ps_N=zero_Q,
        delay_ps_N=zero_Q,
        operation_N=np.full_like(zero_Q, UNKNOWN),
        dependencies=Dependencies.none(len(source_Q)),
        notes=(*trace.notes, *rail_note(placement, source_K, destination_K, pxn=options.pxn)),
    )
    return make_queue_pairs(source_Q, destination_Q, priority=options.priority), traffic


def _volumes(trace: CommTrace, plan: CollectivePlan, num_ranks: int) -> tuple[Batch, Edges, IntArray]:
    """Return a plan's collectives added up, those of the same ranks in the same order as one; edges, and their bytes.

    The group, the first member and the last give the ranks: a broadcast's begin at its root, a message has two.
    """
    batch, edges = plan.batch, edges_of(plan.schedule)
    rank_C2 = trace.rank_N[batch.request_Cn[:, [0, -1]]]
    key_C = (batch.group_C * num_ranks + rank_C2[:, 0]) * num_ranks + rank_C2[:, 1]
    _, first_S, sum_C = np.unique(key_C, return_index=True, return_inverse=True)
    sums = replace(batch, group_C=batch.group_C[first_S], request_Cn=batch.request_Cn[first_S])
    return sums, edges, bytes_of_edges(edges, plan.schedule, batch.bytes_C, sum_C.ravel())
