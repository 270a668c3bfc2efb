"""Workload specifications, and the conversion of messages to queue pairs and a TrafficTrace."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.queue_pairs import make_queue_pairs

GeneratedTraffic = tuple[QueuePairs, TrafficTrace]


@dataclass(frozen=True, kw_only=True)
class WorkloadSpec:
    """Settings of every workload."""

    priority: int = field(default=3, metadata={"help": "802.1p priority of the data"})


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One kind of workload: its specification and its generator."""

    spec: type
    make: Callable[[Any, Fabric, int], GeneratedTraffic]  # spec, fabric, seed
    make_flows: Callable[[Any, Fabric, int], GeneratedTraffic] | None = None  # only how much goes where
    summary: str


def one_message_each(
    source_N: IntArray,
    destination_N: IntArray,
    message_bytes: int | IntArray,
    *,
    start_ps_N: IntArray | None = None,
    priority: int = 3,
) -> GeneratedTraffic:
    """Return a message on a queue pair of its own for each row, by default at time 0; raises InputError."""
    num_rows = len(source_N)
    bytes_N = np.broadcast_to(np.asarray(message_bytes, np.int64), num_rows).copy()
    if (bytes_N < 0).any():
        raise_input_error("message", f"{int(bytes_N.min())} B", "0 B or more")
    zero_N = np.zeros(num_rows, np.int64)
    traffic = TrafficTrace(
        source_N=np.asarray(source_N, np.int64),
        destination_N=np.asarray(destination_N, np.int64),
        medium_N=np.full(num_rows, Medium.FABRIC, np.int64),
        qp_N=np.arange(num_rows),
        bytes_N=bytes_N,
        start_ps_N=zero_N if start_ps_N is None else np.asarray(start_ps_N, np.int64),
        delay_ps_N=zero_N,
        operation_N=np.full(num_rows, UNKNOWN, np.int64),
        dependencies=Dependencies.none(num_rows),
    )
    return make_queue_pairs(source_N, destination_N, priority=priority), traffic


def raise_input_error(where: str, found: str, allowed: str) -> None:
    """Raise InputError."""
    raise InputError(Mistake(where=where, found=found, allowed=allowed))
