"""Expansion of a CommTrace on a placement into queue pairs and a TrafficTrace.

`messages` lays out the messages between ranks, `connections` gives them queue pairs, and `transfers` their endpoints:
ranks on one host talk over NVLINK, GPU to GPU, others over the FABRIC, NIC to NIC. A GPU is numbered by its
rank. A chunk of no bytes crosses nothing, and only passes on the wait.

Between hosts a message keeps to the receiver's rail: it leaves through the NIC of the GPU that has, on the sender's
host, the receiver's place, as NCCL does where it may not cross rails (NCCL_CROSS_NIC=0). To that GPU it crosses NVLink
first (PXN). Where the job has no such GPU, and with PXN off, it leaves through the sender's own. A note of the traffic
says which, where rails change.

Left out: the work of adding chunks up.

Shapes: N requests, K connections.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from fabrictune.collectives.algorithms import ALGORITHMS, Algorithm
from fabrictune.collectives.connections import connect, cut, take_turns
from fabrictune.collectives.messages import blocks_of
from fabrictune.collectives.plans import Slicing, make_plans, refuse_too_many
from fabrictune.collectives.rails import exit_ranks, rail_note
from fabrictune.collectives.transfers import Transfers
from fabrictune.foundation.errors import InputError, Mistake, TraceError, require_one_of
from fabrictune.foundation.extensions.kinds import Extension
from fabrictune.foundation.extensions.tables import Extensible
from fabrictune.foundation.generated_traces import GeneratedTrace
from fabrictune.foundation.row_ranges import CHUNK_ROWS
from fabrictune.foundation.traces import CommTrace, TracedJob, TrafficTrace
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.queue_pairs import make_queue_pairs

MAX_QPS_PER_CONNECTION = 128  # NCCL's own limits
MAX_CHANNELS = 64


@dataclass(frozen=True, kw_only=True)
class ExpansionSpec:
    """Settings of the expansion of requests into messages."""

    algorithm: Annotated[str | Path | Extension[Algorithm], Extensible(ALGORITHMS)] = field(
        default="ring", metadata={"help": "collective algorithm, or a Python file", "one_of": ALGORITHMS}
    )
    qps_per_connection: int = field(default=1, metadata={"help": "queue pairs from one rank to another"})
    qp_use: Literal["round_robin", "split"] = field(
        default="round_robin", metadata={"help": "messages take the queue pairs in turn, or each is split over them"}
    )
    channels: int = field(default=1, metadata={"help": "NCCL's channels: shares of the buffer on ways of their own"})
    slice_bytes: int | None = field(
        default=None, metadata={"help": "cut a channel's chunks into slices of at most this size, passed on one by one"}
    )
    priority: int = field(default=3, metadata={"help": "802.1p priority of the data"})
    pxn: bool = field(
        default=True,
        metadata={"help": "leave through the NIC on the receiver's rail, over NVLink; false: through the own NIC"},
    )

    def __post_init__(self) -> None:
        if isinstance(self.algorithm, str):
            require_one_of(self.algorithm, tuple(ALGORITHMS), where="algorithm", what="algorithm", error=InputError)
        ranges = {
            "qps_per_connection": (1, MAX_QPS_PER_CONNECTION),
            "channels": (1, MAX_CHANNELS),
            "priority": (0, 7),
        }
        for name, (lowest, highest) in ranges.items():
            value = getattr(self, name)
            if not lowest <= value <= highest:
                raise InputError(Mistake(where=name, found=str(value), allowed=f"{lowest} to {highest}"))
        if self.slice_bytes is not None and self.slice_bytes < 1:
            raise InputError(Mistake(where="slice_bytes", found=f"{self.slice_bytes} B", allowed="1 B or more"))

    @property
    def collective(self) -> Algorithm:
        """Return the algorithm itself."""
        if isinstance(self.algorithm, Extension):
            return self.algorithm.value
        assert isinstance(self.algorithm, str), f"{self.algorithm} is loaded before it is used"
        return ALGORITHMS[self.algorithm]

    @property
    def slicing(self) -> Slicing:
        """Return the channels and slices."""
        return Slicing(num_channels=self.channels, slice_bytes=self.slice_bytes)


def expand(
    trace: CommTrace,
    placement: Placement,
    fabric: Fabric,
    options: ExpansionSpec,
    *,
    written_out_rows: int = CHUNK_ROWS,
) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs and the transfers of a trace; raises TraceError.

    `operation_N` names the request each transfer came from, its sender's. Transfers 0 to N - 1 are the N requests
    becoming ready; the last of a request to finish is its completion. Beyond `written_out_rows` the transfers are
    generated as they are read, unless queue pairs take turns, or collectives wait for one another both ways.
    """
    check_placement(trace, placement, fabric)
    num_qps = options.qps_per_connection
    plans = make_plans(trace, placement.host_R, options.collective, options.slicing, is_written_out=num_qps > 1)
    blocks = blocks_of(len(trace), plans)
    del plans  # their schedules are large, and now in the blocks
    parts = ((block.batch, block.edges, block.bytes_UE[block.size_C]) for block in blocks)
    connections = connect(trace, placement.host_R, parts)
    ends = (placement, connections.source_K, connections.destination_K)
    exit_rank_K = exit_ranks(*ends, pxn=options.pxn)
    transfers = Transfers(trace, placement, blocks, connections, exit_rank_K)
    notes = (*trace.notes, *rail_note(*ends, pxn=options.pxn))
    job = TracedJob(requests=trace, begin=0, end=len(transfers))
    traffic: TrafficTrace = GeneratedTrace(transfers, notes, (job,))
    if len(transfers) <= written_out_rows or num_qps > 1 or not transfers.wait_one_way:
        refuse_too_many(sum(block.num_messages for block in blocks))
        traffic = traffic.written_out()
    if num_qps > 1:
        traffic = cut(traffic, num_qps) if options.qp_use == "split" else traffic
        traffic = replace(traffic, qp_N=take_turns(traffic.qp_N, num_qps))
    queue_pairs = make_queue_pairs(
        np.repeat(placement.nic_R[exit_rank_K], num_qps),
        np.repeat(placement.nic_R[connections.destination_K], num_qps),
        priority=options.priority,
    )
    return queue_pairs, traffic


def check_placement(trace: CommTrace, placement: Placement, fabric: Fabric) -> None:
    """Raise TraceError for a rank that has no place."""
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
