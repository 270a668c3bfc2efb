"""Workloads: traffic that asks one question of a fabric.

`incast` sends from many NICs to one at the same time; `permutation` gives every NIC one partner to send to and one to
receive from, never itself. Every transfer has its own queue pair and starts at time 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foundation.errors import InputError, Mistake
from foundation.seeds import stream
from foundation.traces import UNKNOWN, Dependencies, IntColumn, Medium, TrafficTrace
from topology.fabric import Fabric
from topology.network import QueuePairs
from topology.queue_pairs import make_queue_pairs


@dataclass(frozen=True, kw_only=True)
class IncastSpec:
    """`senders` NICs each send one message to `receiver`."""

    senders: int = field(metadata={"help": "how many NICs send; the first ones that are not the receiver"})
    message_bytes: int = field(metadata={"help": "size of each message"})
    receiver: int = field(default=0, metadata={"help": "NIC that receives"})


@dataclass(frozen=True, kw_only=True)
class PermutationSpec:
    """Every NIC sends one message to a partner drawn at random."""

    message_bytes: int = field(metadata={"help": "size of each message"})


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How to make one kind of workload from its spec."""

    spec: type
    make: Callable[[Any, Fabric, int], tuple[QueuePairs, TrafficTrace]]  # spec, fabric, seed
    make_flows: Callable[[Any, Fabric, int], tuple[QueuePairs, TrafficTrace]] | None = None  # only how much goes where
    summary: str


def make_incast(spec: IncastSpec, fabric: Fabric, seed: int) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs and transfers of an incast; raises InputError."""
    if not 0 <= spec.receiver < fabric.num_nics:
        _refuse("incast.receiver", f"NIC {spec.receiver}", f"0 to {fabric.num_nics - 1}, the fabric's NICs")
    if not 1 <= spec.senders < fabric.num_nics:
        _refuse("incast.senders", f"{spec.senders} senders", f"1 to {fabric.num_nics - 1}, the fabric's other NICs")
    others = np.delete(np.arange(fabric.num_nics), spec.receiver)
    source_N = others[: spec.senders]
    return one_message_each(source_N, np.full(spec.senders, spec.receiver), spec.message_bytes)


def make_permutation(spec: PermutationSpec, fabric: Fabric, seed: int) -> tuple[QueuePairs, TrafficTrace]:
    """Return the queue pairs and transfers of a random permutation without fixed points; raises InputError."""
    num_nics = fabric.num_nics
    if num_nics < 2:
        _refuse("permutation", f"a fabric of {num_nics} NIC", "2 NICs or more")
    ring_N = stream(seed, "netsim", "permutation").permutation(num_nics)
    destination_N = np.empty(num_nics, np.int64)
    destination_N[ring_N] = np.roll(ring_N, -1)
    return one_message_each(np.arange(num_nics), destination_N, spec.message_bytes)


def one_message_each(
    source_N: IntColumn, destination_N: IntColumn, message_bytes: int
) -> tuple[QueuePairs, TrafficTrace]:
    """Return a queue pair for each row of source and destination NIC, and one message on it at time 0."""
    if message_bytes < 0:
        _refuse("message", f"{message_bytes} B", "0 B or more")
    num_rows = len(source_N)
    zero_N = np.zeros(num_rows, np.int64)
    traffic = TrafficTrace(
        source_N=np.asarray(source_N, np.int64),
        destination_N=np.asarray(destination_N, np.int64),
        medium_N=np.full(num_rows, Medium.FABRIC, np.int64),
        qp_N=np.arange(num_rows),
        bytes_N=np.full(num_rows, message_bytes, np.int64),
        start_ps_N=zero_N,
        delay_ps_N=zero_N,
        operation_N=np.full(num_rows, UNKNOWN, np.int64),
        dependencies=Dependencies.none(num_rows),
    )
    return make_queue_pairs(source_N, destination_N), traffic


WORKLOADS: Mapping[str, Workload] = {
    "incast": Workload(spec=IncastSpec, make=make_incast, summary="many NICs send to one"),
    "permutation": Workload(spec=PermutationSpec, make=make_permutation, summary="every NIC sends to one other"),
}


def _refuse(where: str, found: str, allowed: str) -> None:
    raise InputError(Mistake(where=where, found=found, allowed=allowed))
