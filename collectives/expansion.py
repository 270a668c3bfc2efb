"""From what ranks ask for to what the wires carry: a CommTrace on a placement becomes queue pairs and a TrafficTrace.

`unrolling` writes out the messages between ranks, `connections` gives them queue pairs, and here they get their
endpoints: ranks on one host talk over NVLINK, GPU to GPU, others over the FABRIC, NIC to NIC. A GPU is numbered by its
rank. A chunk of no bytes crosses nothing, and only passes on the wait.

Left out: the work of adding chunks up; jobs too large to be written out message by message.

Shapes: N requests, R rows, K connections.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from collectives.algorithms import ALGORITHMS, Algorithm
from collectives.connections import connect, cut, take_turns
from collectives.unrolling import unroll
from foundation.errors import InputError, Mistake, TraceError, choose
from foundation.traces import CommTrace, Medium, Operation, TrafficTrace
from topology.fabric import Fabric
from topology.network import QueuePairs
from topology.placement import Placement
from topology.queue_pairs import make_queue_pairs

MAX_QPS_PER_CONNECTION = 128  # NCCL's own limit


@dataclass(frozen=True, kw_only=True)
class ExpansionSpec:
    """How requests become messages."""

    algorithm: str = field(default="ring", metadata={"help": "collective algorithm"})
    qps_per_connection: int = field(default=1, metadata={"help": "queue pairs from one rank to another"})
    qp_use: Literal["round_robin", "split"] = field(
        default="round_robin", metadata={"help": "messages take the queue pairs in turn, or each is split over them"}
    )
    priority: int = field(default=3, metadata={"help": "802.1p priority of the data"})

    def __post_init__(self) -> None:
        choose(self.algorithm, tuple(ALGORITHMS), where="algorithm", what="algorithm", error=InputError)
        for name, lowest, highest in (("qps_per_connection", 1, MAX_QPS_PER_CONNECTION), ("priority", 0, 7)):
            value = getattr(self, name)
            if not lowest <= value <= highest:
                raise InputError(Mistake(where=name, found=str(value), allowed=f"{lowest} to {highest}"))


def expand(
    trace: CommTrace, placement: Placement, fabric: Fabric, options: ExpansionSpec
) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs and the transfers of a trace; raises TraceError.

    `operation_N` names the request each transfer came from, its sender's. Transfers 0 to N - 1 are the N requests
    becoming ready; the last of a request to finish is its completion.
    """
    algorithm = ALGORITHMS[options.algorithm]
    _check_ranks(trace, placement, fabric)
    _check_operations(trace, options.algorithm, algorithm)
    messages = unroll(trace, algorithm)
    if options.qp_use == "split":
        messages = cut(messages, options.qps_per_connection)
    moves_R = (messages.source_R != messages.destination_R) & (messages.bytes_R > 0)
    is_local_R = placement.host_R[messages.source_R] == placement.host_R[messages.destination_R]
    on_fabric_R = moves_R & ~is_local_R
    connections = connect(messages, on_fabric_R)
    traffic = TrafficTrace(
        source_N=np.where(on_fabric_R, placement.nic_R[messages.source_R], messages.source_R),
        destination_N=np.where(on_fabric_R, placement.nic_R[messages.destination_R], messages.destination_R),
        medium_N=np.where(on_fabric_R, Medium.FABRIC, np.where(moves_R, Medium.NVLINK, Medium.NONE)),
        qp_N=take_turns(connections.connection_R, options.qps_per_connection),
        bytes_N=messages.bytes_R,
        start_ps_N=np.zeros(len(messages), np.int64),
        delay_ps_N=messages.delay_ps_R,
        operation_N=messages.request_R,
        dependencies=messages.dependencies,
    )
    queue_pairs = make_queue_pairs(
        np.repeat(placement.nic_R[connections.source_K], options.qps_per_connection),
        np.repeat(placement.nic_R[connections.destination_K], options.qps_per_connection),
        priority=options.priority,
    )
    return queue_pairs, traffic


def _check_ranks(trace: CommTrace, placement: Placement, fabric: Fabric) -> None:
    num_placed = len(placement.nic_R)
    highest = max((max(group, default=0) for group in trace.groups), default=0)
    if highest >= num_placed:
        raise TraceError(
            Mistake(
                where="communication trace",
                found=f"rank {highest}, where {num_placed} ranks are placed",
                next_step="place a layout of as many ranks as the trace has",
            )
        )
    assert placement.nic_R.max(initial=0) < fabric.num_nics, "a placement on another fabric"


def _check_operations(trace: CommTrace, name: str, algorithm: Algorithm) -> None:
    foreign = np.nonzero(~np.isin(trace.operation_N, list(algorithm.schedules)))[0]
    if len(foreign):
        row = int(foreign[0])
        raise TraceError(
            Mistake(
                where=f"communication trace, row {row}",
                found=f"{Operation(trace.operation_N[row]).name.lower()}, which the algorithm {name!r} does not do",
                allowed=", ".join(operation.name.lower() for operation in algorithm.schedules),
            )
        )
