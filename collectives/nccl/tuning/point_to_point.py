"""The time of operations without an algorithm: an all-to-all, and a send to the next rank.

Both are messages of pairs on point-to-point channels, in the protocol Simple, or LL up to 16 KiB. A message to another
rail crosses NVLink first (PXN), and the NICs of a host share what leaves it.

Source: NVIDIA/nccl v2.27.7-1, src/enqueue.cc (addP2pToPlan, NCCL_P2P_LL_THRESHOLD), src/init.cc (P2P chunk sizes).
"""

from dataclasses import dataclass

from fabrictune.collectives.nccl.tuning.constants import Medium
from fabrictune.collectives.nccl.tuning.duration import GB, Duration
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.protocols import Algorithm, Protocol
from fabrictune.foundation.traces import Operation

LL_MOST_BYTES = 2**14  # NCCL_P2P_LL_THRESHOLD, of a pair and channel
CHUNK_BYTES = 2**17  # NCCL_P2P_NET_CHUNKSIZE


@dataclass(frozen=True, kw_only=True)
class _Load:
    """What the busiest GPU and NIC carry, in bytes, and how many messages to other hosts a rank posts."""

    inside: float
    of_nic: float
    num_posts: int


def protocol_of(model: Model, operation: Operation, size_bytes: int) -> Protocol:
    """Return the protocol of a pair's messages."""
    of_pair = size_bytes // model.system.num_ranks if operation == Operation.ALL_TO_ALL else size_bytes
    return Protocol.LL if of_pair <= LL_MOST_BYTES else Protocol.SIMPLE


def point_to_point_time(model: Model, operation: Operation, size_bytes: int) -> Duration:
    """Return the time of an all-to-all, or of a send of every rank to the next."""
    system, protocol = model.system, protocol_of(model, operation, size_bytes)
    load = _exchanged(model, size_bytes) if operation == Operation.ALL_TO_ALL else _passed_on(model, size_bytes)
    factor = 2.0 if protocol == Protocol.LL else 1.0
    inside_us = factor * load.inside / (system.inside * GB)
    chunk = max(
        1.0, min(model.settings.number("p2p_chunk_bytes", CHUNK_BYTES), _message_bytes(model, operation, size_bytes))
    )
    wire_us = factor * chunk / (system.nic_payload * GB) if load.of_nic else 0.0
    between_us = load.of_nic / chunk * (wire_us + system.transport.message_us)
    medium = Medium.NETWORK if system.num_hosts > 1 else model.medium
    hop_us = model.constants.step(medium, Algorithm.TREE, protocol)
    if system.num_hosts > 1:
        hop_us += system.transport.extra_us
        hop_us += system.transport.simple_extra_us if protocol == Protocol.SIMPLE else 0.0
    return Duration(
        latency_us=model.constants.base(Algorithm.RING, protocol) + hop_us + load.num_posts * system.post_us,
        fill_us=wire_us + factor * chunk / (system.inside * GB) if load.of_nic else 0.0,
        transfer_us=max(inside_us, between_us),
        bottleneck="network" if between_us > inside_us else model.medium.value,
        network_us=hop_us if system.num_hosts > 1 else 0.0,
        network_unsure=system.transport.unsure_fraction,
        is_compared=False,
    )


def _message_bytes(model: Model, operation: Operation, size_bytes: int) -> float:
    return size_bytes / model.system.num_ranks if operation == Operation.ALL_TO_ALL else float(size_bytes)


def _exchanged(model: Model, size_bytes: int) -> _Load:
    system = model.system
    local, ranks = system.gpus_per_host, system.num_ranks
    outside = ranks - local
    relayed = outside * (local - 1) / local if not model.settings.number("pxn_disable", 0) and system.nvlink else 0.0
    return _Load(
        inside=size_bytes / ranks * (local - 1 + relayed),
        of_nic=size_bytes / ranks * outside * local / system.nics_per_host,
        num_posts=outside,
    )


def _passed_on(model: Model, size_bytes: int) -> _Load:
    """Return the load of a ring of hosts: the last GPU of each sends to the next host's first."""
    is_between = model.system.num_hosts > 1
    is_inside = model.system.gpus_per_host > 1
    return _Load(inside=size_bytes * is_inside, of_nic=size_bytes * is_between, num_posts=int(is_between))
