"""Parts of a step that may grow over a run, each by step and rank.

A step is as long as its slowest rank, so that a part counts with its largest value over ranks. The start skew is what
nobody's spans explain: members that come late to the sums of gradients though their work, data and collections do not
take longer, as they do where something outside of passes stops a process.

Shapes: R ranks, S steps, J joined requests, M members.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.stragglers.diagnosis import sum_of
from fabrictune.observability.stragglers.requests import JoinedRequests, join_requests
from fabrictune.observability.stragglers.work import PASSES, Work, common_steps, own_work

MAX_STEPS = 4000
WORK, GARBAGE, LOADING, CHECKPOINT, SKEW = "work", "garbage collection", "data loading", "checkpoints", "start skew"
_KINDS: Mapping[str, tuple[SpanKind, ...]] = {
    WORK: (*PASSES, SpanKind.OPTIMIZER),
    GARBAGE: (SpanKind.GARBAGE_COLLECTION,),
    LOADING: (SpanKind.LOADER,),
    CHECKPOINT: (SpanKind.CHECKPOINT,),
}
PARTS = (WORK, GARBAGE, LOADING, CHECKPOINT, SKEW)
_SUMS = (Operation.REDUCE_SCATTER, Operation.ALL_REDUCE, Operation.ALL_TO_ALL)


@dataclass(frozen=True, kw_only=True)
class StepParts:
    """Parts of each step."""

    steps: IntArray
    step_ns_S: FloatArray
    part_ns: Mapping[str, FloatArray]  # R S, 0 where a rank has none


def step_parts(spans: Spans) -> StepParts:
    """Return the parts of the steps that all ranks have."""
    common = common_steps(spans, max_steps=MAX_STEPS)
    work, joined = own_work(common), join_requests(common)
    parts = {name: np.nan_to_num(sum_of(work, kinds)) for name, kinds in _KINDS.items()}
    return StepParts(
        steps=work.steps,
        step_ns_S=np.nanmax(work.step_ns_RS, axis=0) if len(work.steps) else np.zeros(0),
        part_ns={**parts, SKEW: _skew(joined, work, _replica_excess(common.layout, work, parts))},
    )


def _replica_excess(layout: ParallelLayout, work: Work, parts: Mapping[str, FloatArray]) -> FloatArray:
    """Return what a rank's replica has more of than others: the excess of its ranks over peers, R S."""
    sums_RS = sum(parts.values(), np.zeros_like(work.step_ns_RS))
    excess_RS = np.zeros_like(sums_RS)
    for peers in np.unique(work.peers_R):
        own = work.peers_R == peers
        excess_RS[own] = np.maximum(sums_RS[own] - np.median(sums_RS[own], axis=0), 0)
    replica_R = layout.coordinates(np.arange(layout.world_size))["dp"]
    for replica in np.unique(replica_R):
        own = replica_R == replica
        excess_RS[own] = excess_RS[own].sum(axis=0)
    return excess_RS


def _skew(joined: JoinedRequests, work: Work, excess_RS: FloatArray) -> FloatArray:
    """Return for each rank and step how late it comes to sums of gradients beyond what its replica's work explains."""
    skew_RS = np.zeros_like(work.step_ns_RS)
    is_sum_J = (joined.size_J > 1) & np.isin(joined.operation_J, _SUMS) & _is_replicas(joined)
    rows = np.flatnonzero(is_sum_J[joined.request_M])
    if not len(rows):
        return skew_RS
    request, rank = joined.request_M[rows], joined.rank_M[rows]
    _, group_of = np.unique(request, return_inverse=True)
    column = np.searchsorted(work.steps, joined.step_J[request])
    late = joined.issue_ns_M[rows] - _medians(joined.issue_ns_M[rows].astype(np.float64), group_of)[group_of]
    np.maximum.at(skew_RS, (rank, column), np.maximum(late - excess_RS[rank, column], 0))
    return skew_RS


def _is_replicas(joined: JoinedRequests) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return whether each request is of ranks with the same weights, and moves more than a report does."""
    return np.array([axis in ("dp", "dp_cp", "edp") for axis in joined.axis_J], bool) & (joined.bytes_J > 1024)


def _medians(values: FloatArray, group_of: IntArray) -> FloatArray:
    order = np.lexsort((values, group_of))
    begins = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    sizes = np.diff(np.append(begins, len(order)))
    ordered = values[order]
    return np.asarray((ordered[begins + (sizes - 1) // 2] + ordered[begins + sizes // 2]) / 2)
