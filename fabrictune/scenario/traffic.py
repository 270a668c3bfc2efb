"""What a scenario can send over a fabric: netsim's workloads, a training job's collectives, and traces from files.

`TRAFFIC` lists them all: a spec, and a function from it to queue pairs and a TrafficTrace. This module only joins
rooms: the job and its expansion come from collectives, the placement from topology.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from collectives.expansion import expand
from collectives.jobs import collective_step
from fabrictune.scenario.jobs import JobSpec, NeighboursSpec, make_neighbours
from fabrictune.scenario.observed import ObservedSpec, make_observed
from foundation.errors import InputError, Mistake, TraceError, choose
from foundation.layout import Axis
from foundation.traces import CommTrace, IntColumn, Medium, Operation, TrafficTrace
from netsim.workloads import WORKLOADS, Workload
from topology.fabric import Fabric
from topology.network import QueuePairs
from topology.queue_pairs import make_queue_pairs

Made = tuple[QueuePairs, TrafficTrace]


@dataclass(frozen=True, kw_only=True)
class AllReduceSpec(JobSpec):
    """One gradient all-reduce in every data-parallel group of a job, all at once."""

    message_bytes: int = field(metadata={"help": "gradients of one rank"})

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_bytes(self.message_bytes)


COLLECTIVES = tuple(
    operation.name.lower()
    for operation in Operation
    if operation not in (Operation.SEND, Operation.RECEIVE, Operation.BARRIER)
)


@dataclass(frozen=True, kw_only=True)
class CollectiveSpec(JobSpec):
    """One collective in every group of a job along an axis, all at once."""

    operation: str = field(metadata={"help": f"what each group does: {', '.join(COLLECTIVES)}"})
    axis: Axis = field(default="dp", metadata={"help": "whose groups: tp, dp or pp"})
    message_bytes: int = field(metadata={"help": "nccl-tests' size: the full buffer of one rank"})

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_bytes(self.message_bytes)
        choose(self.operation, COLLECTIVES, where="operation", what="operation", error=InputError)


@dataclass(frozen=True, kw_only=True)
class CommTraceSpec(JobSpec):
    """What a job asked for, from a file."""

    file: Path = field(metadata={"help": "communication trace (Parquet)"})


@dataclass(frozen=True, kw_only=True)
class TrafficTraceSpec:
    """What the wires carry, from a file; endpoints are NICs of the fabric."""

    file: Path = field(metadata={"help": "traffic trace (Parquet)"})
    priority: int = field(default=3, metadata={"help": "802.1p priority of the data"})


def _require_bytes(message_bytes: int) -> None:
    if message_bytes < 1:
        raise InputError(Mistake(where="message_bytes", found=str(message_bytes), allowed="1 B or more"))


def make_all_reduce(spec: AllReduceSpec, fabric: Fabric, seed: int) -> Made:
    """Return the all-reduces of a job's data-parallel groups, expanded on its placement."""
    return expand(collective_step(spec.layout, spec.message_bytes), spec.place_on(fabric), fabric, spec.expansion)


def make_collective(spec: CollectiveSpec, fabric: Fabric, seed: int) -> Made:
    """Return the collectives of a job's groups along an axis, expanded on its placement."""
    operation = Operation[spec.operation.upper()]
    trace = collective_step(spec.layout, spec.message_bytes, operation=operation, axis=spec.axis)
    return expand(trace, spec.place_on(fabric), fabric, spec.expansion)


def make_from_comm_trace(spec: CommTraceSpec, fabric: Fabric, seed: int) -> Made:
    """Return the expansion of a communication trace; raises TraceError."""
    return expand(CommTrace.read(spec.file), spec.place_on(fabric), fabric, spec.expansion)


def make_from_traffic_trace(spec: TrafficTraceSpec, fabric: Fabric, seed: int) -> Made:
    """Return a traffic trace with the queue pairs it uses; raises TraceError."""
    trace = TrafficTrace.read(spec.file)
    return _queue_pairs_of(trace, fabric, spec), trace


def _queue_pairs_of(trace: TrafficTrace, fabric: Fabric, spec: TrafficTraceSpec) -> QueuePairs:
    """Return one queue pair for each row number in the trace, between the endpoints of its transfers."""
    on_fabric = trace.medium_N == Medium.FABRIC
    qp, source, destination = trace.qp_N[on_fabric], trace.source_N[on_fabric], trace.destination_N[on_fabric]
    found, first = np.unique(qp, return_index=True)
    if not np.array_equal(found, np.arange(len(found))):
        raise _trace_error(spec, "queue pairs that are not numbered 0, 1, 2, ...")
    _check_endpoints(spec, fabric, source, destination)
    if (source != source[first][qp]).any() or (destination != destination[first][qp]).any():
        raise _trace_error(spec, "a queue pair with transfers between different endpoints")
    return make_queue_pairs(source[first], destination[first], priority=spec.priority)


def _check_endpoints(spec: TrafficTraceSpec, fabric: Fabric, *endpoints: IntColumn) -> None:
    nic = np.concatenate(endpoints)
    is_foreign = (nic < 0) | (nic >= fabric.num_nics)
    if is_foreign.any():
        allowed = f"0 to {fabric.num_nics - 1}, the NICs of the fabric"
        raise _trace_error(spec, f"endpoint {nic[np.argmax(is_foreign)]}, which the fabric does not have", allowed)


def _trace_error(spec: TrafficTraceSpec, found: str, allowed: str = "") -> TraceError:
    return TraceError(Mistake(where=str(spec.file), found=found, allowed=allowed))


TRAFFIC: Mapping[str, Workload] = {
    **WORKLOADS,
    "all_reduce": Workload(
        spec=AllReduceSpec, make=make_all_reduce, summary="a training job's data-parallel all-reduces, all at once"
    ),
    "collective": Workload(
        spec=CollectiveSpec,
        make=make_collective,
        summary="one collective in every group of a training job, all at once",
    ),
    "neighbours": Workload(
        spec=NeighboursSpec,
        make=make_neighbours,
        summary="every rank of a training job sends to its neighbours along the axes, all at once",
    ),
    "comm_trace": Workload(
        spec=CommTraceSpec, make=make_from_comm_trace, summary="what the ranks of a job asked for, from a file"
    ),
    "observed": Workload(
        spec=ObservedSpec, make=make_observed, summary="flows seen on a real network: captures, NCCL's logs, listings"
    ),
    "traffic_trace": Workload(
        spec=TrafficTraceSpec, make=make_from_traffic_trace, summary="what the wires carried, from a file"
    ),
}
