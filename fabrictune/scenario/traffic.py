"""Traffic of a scenario: netsim's workloads, a training job's collectives, and traces from files.

`SINGLE_TRAFFIC` lists them: a spec, and a function from it to queue pairs and a TrafficTrace. This module only joins
rooms: the job and its expansion come from collectives, the placement from topology.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.collectives.expansion import expand
from fabrictune.collectives.flow_volumes import expand_to_flows
from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.overlapped_work import has_measured_waits, with_overlapped_work
from fabrictune.collectives.scaled_traces import scale_trace
from fabrictune.collectives.traces.formats import TRACE_FORMATS, find_job, read_trace
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake, TraceError, require_one_of
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import AXES, Axis, ParallelLayout
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Medium, Operation, TrafficTrace
from fabrictune.netsim.workloads import WORKLOADS
from fabrictune.netsim.workloads.connection_matrix import is_connection_matrix, read_connection_matrix
from fabrictune.netsim.workloads.flow_lists import flows_on_fabric
from fabrictune.netsim.workloads.ns3_flows import is_ns3_flows, read_ns3_flows
from fabrictune.netsim.workloads.table import GeneratedTraffic, Workload
from fabrictune.scenario.experts import MOE
from fabrictune.scenario.jobs import JobSpec, NeighboursSpec, make_neighbours
from fabrictune.scenario.observed import ObservedSpec, make_observed
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.placement import Placement
from fabrictune.topology.queue_pairs import make_queue_pairs

MAX_LISTED = 8  # ranks that a message names
UNKNOWN_OVERLAP = "work beside communication is not in the trace; exposed communication is at most what a replay shows"


@dataclass(frozen=True, kw_only=True)
class AllReduceSpec(JobSpec):
    """One gradient all-reduce in every data-parallel group of a job, all at once."""

    message_bytes: int = field(metadata={"help": "gradients of one rank"})

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_bytes(self.message_bytes)


COLLECTIVES = tuple(
    operation.name.lower() for operation in Operation if operation not in (Operation.RECEIVE, Operation.BARRIER)
)


@dataclass(frozen=True, kw_only=True)
class CollectiveSpec(JobSpec):
    """One collective in every group of a job along an axis, all at once."""

    operation: str = field(metadata={"help": "what each group does", "one_of": COLLECTIVES})
    axis: Axis = field(default="dp", metadata={"help": f"whose groups: {', '.join(AXES)}"})
    message_bytes: int = field(metadata={"help": "nccl-tests' size: the full buffer of one rank"})

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_bytes(self.message_bytes)
        require_one_of(self.operation, COLLECTIVES, where="operation", what="operation", error=InputError)


@dataclass(frozen=True, kw_only=True)
class CommTraceSpec(JobSpec):
    """The requests of a job, from a file."""

    file: Path = field(metadata={"help": f"communication trace, or a folder of them: {', '.join(TRACE_FORMATS)}"})
    traced_layout: ParallelLayout | None = field(
        default=None, metadata={"help": "layout of the ranks in the file, where the job's has more of dp"}
    )

    @property
    def layout_of_file(self) -> ParallelLayout:
        """The layout of the ranks in the file."""
        return self.traced_layout or self.layout


@dataclass(frozen=True, kw_only=True)
class TrafficTraceSpec:
    """The transfers on the wires, from a file; endpoints are NICs of the fabric."""

    file: Path = field(
        metadata={"help": "traffic trace (Parquet), connection matrix of htsim (.cm) or flow file of HPCC's ns-3"}
    )
    priority: int = field(default=3, metadata={"help": "802.1p priority of the data"})


def _require_bytes(message_bytes: int) -> None:
    if message_bytes < 1:
        raise InputError(Mistake(where="message_bytes", found=str(message_bytes), allowed="1 B or more"))


def _trace_of_all_reduce(spec: AllReduceSpec) -> CommTrace:
    return collective_step(spec.layout, spec.message_bytes)


def _trace_of_collective(spec: CollectiveSpec) -> CommTrace:
    operation = Operation[spec.operation.upper()]
    return collective_step(spec.layout, spec.message_bytes, operation=operation, axis=spec.axis)


def _trace_of_file(spec: CommTraceSpec, *, is_added_up: bool = False) -> CommTrace:
    """Return the requests of a file; raises InputError where its ranks are not those of the layout."""
    layout = spec.layout_of_file
    trace = read_trace([spec.file], num_ranks=layout.world_size, is_added_up=is_added_up)
    num_ranks = 1 + max((rank for group in trace.groups for rank in group), default=-1)
    if num_ranks != layout.world_size:
        where = "layout" if spec.traced_layout is None else "traced_layout"
        raise InputError(
            Mistake(
                where=where,
                found=f"{layout.world_size} ranks ({layout.describe()}), and {spec.file} has {num_ranks}",
                allowed="as many ranks as the trace has",
                next_step=f"set degrees whose product is {num_ranks}; with these as `traced_layout`, `layout` may have "
                "more of dp",
            )
        )
    _require_every_rank(trace, spec)
    return trace


def _require_every_rank(trace: CommTrace, spec: CommTraceSpec) -> None:
    """Refuse a trace in which ranks of the job ask for nothing: their files are missing, and groups lack them."""
    num_ranks = spec.layout_of_file.world_size
    silent = np.setdiff1d(np.arange(num_ranks), trace.rank_N)
    next_step = "give the traces of all ranks (Chakra: NAME.RANK.et of each, and comm_group.json)"
    if len(silent):
        more = f" and {len(silent) - MAX_LISTED} more" if len(silent) > MAX_LISTED else ""
        found = f"no request of ranks {', '.join(map(str, silent[:MAX_LISTED].tolist()))}{more}"
        allowed = f"requests of all {num_ranks} ranks"
        raise TraceError(Mistake(where=str(spec.file), found=found, allowed=allowed, next_step=next_step))
    if all(len(group) < 2 for group in trace.groups):
        found = "groups of one rank each, of which nothing crosses the fabric"
        raise TraceError(Mistake(where=str(spec.file), found=found, next_step=next_step))


def _trace_to_replay(spec: CommTraceSpec) -> CommTrace:
    """Return the requests of a file with the work beside them; a note where a profile does not say it."""
    trace = _trace_of_file(spec)
    if (trace.issue_ps_N == UNKNOWN).all() or has_measured_waits(trace):
        return _scaled(with_overlapped_work(trace), spec)
    return _scaled(replace(trace, notes=(*trace.notes, f"{spec.file}: {UNKNOWN_OVERLAP}")), spec)


def _scaled(trace: CommTrace, spec: CommTraceSpec) -> CommTrace:
    """Return the trace of all ranks of the job; raises InputError where its layout does not follow from the file's."""
    return trace if spec.traced_layout is None else scale_trace(trace, spec.traced_layout, spec.layout)


def _sums_of_file(spec: CommTraceSpec) -> CommTrace:
    return _scaled(_trace_of_file(spec, is_added_up=True), spec)


def _with_notes(trace: CommTrace, placement: Placement) -> CommTrace:
    """Return the trace with the notes of where its ranks run."""
    return replace(trace, notes=(*trace.notes, *placement.notes)) if placement.notes else trace


def _of_requests(
    spec: type[JobSpec],
    trace_of: Callable[[Any], CommTrace],
    summary: str,
    *,
    sums_of: Callable[[Any], CommTrace] | None = None,
) -> Workload:
    """Return a workload of what a job's ranks ask for: its messages for an engine, or a flow a queue pair.

    `sums_of` gives the trace for flows, where that may be shorter.
    """

    def make(spec: JobSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
        placement = spec.place_on(fabric)  # first: a job larger than the fabric ends here
        return expand(_with_notes(trace_of(spec), placement), placement, fabric, spec.expansion)

    def make_flows(spec: JobSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
        placement = spec.place_on(fabric)
        trace = _with_notes((sums_of or trace_of)(spec), placement)
        return expand_to_flows(trace, placement, fabric, spec.expansion)

    return Workload(spec=spec, make=make, make_flows=make_flows, summary=summary)


def make_from_traffic_trace(spec: TrafficTraceSpec, fabric: Fabric, seed: int) -> GeneratedTraffic:
    """Return a traffic trace with the queue pairs it uses; raises TraceError."""
    if is_connection_matrix(spec.file):
        return flows_on_fabric(read_connection_matrix(spec.file), fabric, priority=spec.priority)
    if is_ns3_flows(spec.file):
        return flows_on_fabric(read_ns3_flows(spec.file), fabric, priority=spec.priority)
    trace = TrafficTrace.read(spec.file)
    return _queue_pairs_of(trace, fabric, spec), trace


def _queue_pairs_of(trace: TrafficTrace, fabric: Fabric, spec: TrafficTraceSpec) -> QueuePairs:
    """Return one queue pair for each row number in the trace, between the endpoints of its transfers."""
    on_fabric = trace.medium_N == Medium.FABRIC
    qp, source, destination = trace.qp_N[on_fabric], trace.source_N[on_fabric], trace.destination_N[on_fabric]
    unique_qps, first = np.unique(qp, return_index=True)
    if not np.array_equal(unique_qps, np.arange(len(unique_qps))):
        raise _trace_error(spec, "queue pairs that are not numbered 0, 1, 2, ...")
    _check_endpoints(spec, fabric, source, destination)
    if (source != source[first][qp]).any() or (destination != destination[first][qp]).any():
        raise _trace_error(spec, "a queue pair with transfers between different endpoints")
    return make_queue_pairs(source[first], destination[first], priority=spec.priority)


def _check_endpoints(spec: TrafficTraceSpec, fabric: Fabric, *endpoints: IntArray) -> None:
    nic = np.concatenate(endpoints)
    is_foreign = (nic < 0) | (nic >= fabric.num_nics)
    if is_foreign.any():
        allowed = f"0 to {fabric.num_nics - 1}, the NICs of the fabric"
        raise _trace_error(spec, f"endpoint {nic[np.argmax(is_foreign)]}, which the fabric does not have", allowed)


def _trace_error(spec: TrafficTraceSpec, found: str, allowed: str = "") -> TraceError:
    return TraceError(Mistake(where=str(spec.file), found=found, allowed=allowed))


SINGLE_TRAFFIC: Mapping[str, Workload] = {
    **WORKLOADS,
    "all_reduce": _of_requests(
        AllReduceSpec, _trace_of_all_reduce, "a training job's data-parallel all-reduces, all at once"
    ),
    "collective": _of_requests(
        CollectiveSpec, _trace_of_collective, "one collective in every group of a training job, all at once"
    ),
    "neighbours": Workload(
        spec=NeighboursSpec,
        make=make_neighbours,
        summary="every rank of a training job sends to its neighbours along the axes, all at once",
    ),
    "moe": MOE,
    "comm_trace": _of_requests(
        CommTraceSpec, _trace_to_replay, "requests of the ranks of a job, from a file", sums_of=_sums_of_file
    ),
    "observed": Workload(
        spec=ObservedSpec, make=make_observed, summary="flows seen on a real network: captures, NCCL's logs, listings"
    ),
    "traffic_trace": Workload(
        spec=TrafficTraceSpec, make=make_from_traffic_trace, summary="transfers on the wires, from a file"
    ),
}


def _job_of_file(spec: CommTraceSpec) -> CommTrace | JobTrace:
    """Return the planned job of a file, or the requests of its ranks."""
    job = find_job([spec.file]) if spec.traced_layout is None else None
    return job or _trace_to_replay(spec)


_REQUESTS: Mapping[type, Callable[[Any], CommTrace | JobTrace]] = {
    AllReduceSpec: _trace_of_all_reduce,
    CollectiveSpec: _trace_of_collective,
    CommTraceSpec: _job_of_file,
}


def requests_of(chosen: Chosen) -> CommTrace | JobTrace | None:
    """Return what the ranks of a scenario's job ask for, a planned job as its templates; None for other traffic."""
    make = _REQUESTS.get(type(chosen.spec))
    return make(chosen.spec) if make else None
