"""Own work of each rank in each step: the time of its passes without the waits in them, and other work.

Peers are the ranks of one pipeline place: they run the same passes on the same layers.

Shapes: N spans, R ranks, S steps, K kinds of spans.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN

PASSES = (SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.WEIGHT_GRADIENT)
WORK = (*PASSES, SpanKind.OPTIMIZER, SpanKind.LOADER, SpanKind.CHECKPOINT, SpanKind.GARBAGE_COLLECTION)
MAX_STEPS = 200  # that are looked at, the newest


@dataclass(frozen=True, kw_only=True)
class Work:
    """Own work of ranks by step; NaN where a rank has no span of the kind in the step."""

    steps: IntArray
    peers_R: IntArray  # place in the pipeline
    own_ns: Mapping[SpanKind, FloatArray]  # R S
    step_ns_RS: FloatArray


def common_steps(spans: Spans, *, max_steps: int = MAX_STEPS) -> Spans:
    """Return the spans of the newest steps that all ranks have whole, without a run's first, which warms up."""
    whole = spans.where((spans.kind_N == SpanKind.STEP) & (spans.step_N >= 0))
    ranks = np.unique(spans.rank_N)
    steps, counts = np.unique(np.unique(np.stack([whole.step_N, whole.rank_N]), axis=1)[0], return_counts=True)
    common = steps[counts == len(ranks)]
    return spans.where(np.isin(spans.step_N, common[1:][-max_steps:]))


def own_work(spans: Spans) -> Work:
    """Return the own work of spans of common steps."""
    steps, num_ranks = np.unique(spans.step_N[spans.kind_N == SpanKind.STEP]), spans.layout.world_size
    column_N = np.searchsorted(steps, spans.step_N)
    is_request = (spans.kind_N == SpanKind.REQUEST) & (spans.end_ns_N != UNKNOWN)
    own_N = (spans.end_ns_N - spans.start_ns_N).astype(np.float64)
    is_apart_N = is_request | (spans.kind_N == SpanKind.GARBAGE_COLLECTION)
    begins = np.flatnonzero(np.diff(spans.rank_N, prepend=-1))  # ranks lie together
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(spans)], strict=True):
        _subtract_waits(spans, own_N, is_apart_N, slice(begin, end))

    def summed(kind: SpanKind) -> FloatArray:
        is_kind = spans.kind_N == kind
        sums_RS, counts_RS = np.zeros((2, num_ranks, len(steps)))
        place = spans.rank_N[is_kind], column_N[is_kind]
        np.add.at(sums_RS, place, own_N[is_kind])
        np.add.at(counts_RS, place, 1)
        return np.where(counts_RS > 0, sums_RS, np.nan)

    return Work(
        steps=steps,
        peers_R=spans.layout.coordinates(np.arange(num_ranks))["pp"],
        own_ns={kind: summed(kind) for kind in WORK if (spans.kind_N == kind).any()},
        step_ns_RS=summed(SpanKind.STEP),
    )


def waits_for_data_ns(work: Work) -> FloatArray | None:
    """Return the mean wait for data in a step of each rank, NaN for ranks without steps; None where none has waited."""
    loading_RS = work.own_ns.get(SpanKind.LOADER)
    if loading_RS is None:
        return None
    return np.where(np.isfinite(work.step_ns_RS).any(axis=1), np.nan_to_num(loading_RS).mean(axis=1), np.nan)


def _subtract_waits(spans: Spans, own_N: FloatArray, is_apart_N: BoolArray, rows: slice) -> None:
    """Take the waits and collections of garbage within a rank's passes and updates off them."""
    start, end, is_apart = spans.start_ns_N[rows], spans.end_ns_N[rows], is_apart_N[rows]
    order = np.argsort(start[is_apart], kind="stable")
    begins = start[is_apart][order]
    waited = np.concatenate([[0], np.cumsum((end - start)[is_apart][order])])
    is_passing = np.isin(spans.kind_N[rows], (*PASSES, SpanKind.OPTIMIZER))
    first, last = (np.searchsorted(begins, times[is_passing]) for times in (start, end))
    own_N[rows][is_passing] -= waited[last] - waited[first]
