"""State of each rank of a job, from its spans: as its peers, a straggler, in a request without an end, or silent.

Shapes: R ranks, N spans.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.observability.stragglers.diagnosis import diagnose


class RankState(StrEnum):
    """What is to be said of a rank first; the later in the list, the worse."""

    NORMAL = "as its peers"
    LAST = "last to arrive"
    STRAGGLER = "straggler"
    OPEN = "request without an end"
    SILENT = "no spans"
    HUNG = "hung"
    DEAD = "dead"


@dataclass(frozen=True, kw_only=True)
class RankStates:
    """States of all ranks with what they rest on; NaN where that is not known."""

    states: tuple[RankState, ...]
    details: tuple[str, ...]
    work_ratio_R: FloatArray  # own passes over those of peers, median over steps
    wait_fraction_R: FloatArray  # of the time between a rank's first span and its last
    last_share_R: FloatArray  # of a group's requests with someone late, in how many it was this rank, at most
    notes: tuple[str, ...] = field(default=())


def rank_states(spans: Spans) -> RankStates:
    """Return the states that the spans of a job show."""
    num_ranks = spans.layout.world_size
    states, details = [RankState.NORMAL] * num_ranks, [""] * num_ranks
    work_ratio_R, last_share_R = np.full(num_ranks, np.nan), np.zeros(num_ranks)
    notes: tuple[str, ...] = ()

    def mark(rank: int, state: RankState, detail: str) -> None:
        if list(RankState).index(state) > list(RankState).index(states[rank]):
            states[rank] = state
        details[rank] = f"{details[rank]}; {detail}" if details[rank] else detail

    try:
        found = diagnose(spans)
    except TraceError as error:
        notes = (f"no comparison of ranks: {error.mistakes[0].found}",)
    else:
        notes = found.notes
        is_known_R = ~np.isnan(found.ratio_RS).all(axis=1)
        work_ratio_R[is_known_R] = np.nanmedian(found.ratio_RS[is_known_R], axis=1)
        for arrival in found.arrivals:
            if arrival.last_rank != UNKNOWN:
                last_share_R[arrival.last_rank] = max(last_share_R[arrival.last_rank], arrival.last_share)
                mark(arrival.last_rank, RankState.LAST, f"last of its {arrival.axis} group in {arrival.last_share:.0%}")
        for straggler in found.stragglers:
            for rank in straggler.ranks:
                mark(rank, RankState.STRAGGLER, f"{straggler.cause}, {straggler.excess_fraction:.1%}")
    open_R = _open_requests(spans, num_ranks)
    for rank in np.flatnonzero(open_R).tolist():
        mark(rank, RankState.OPEN, f"its last request of {open_R[rank]} has no end")
    for rank in np.flatnonzero(np.bincount(spans.rank_N, minlength=num_ranks) == 0).tolist():
        mark(rank, RankState.SILENT, "nothing of it was read")
    return RankStates(
        states=tuple(states),
        details=tuple(details),
        work_ratio_R=work_ratio_R,
        wait_fraction_R=_wait_fractions(spans, num_ranks),
        last_share_R=last_share_R,
        notes=notes,
    )


def _open_requests(spans: Spans, num_ranks: int) -> IntArray:
    """Return how many requests a rank has made, where the last of them has no end; else 0."""
    rows = np.flatnonzero(spans.kind_N == SpanKind.REQUEST)
    order = rows[np.lexsort((spans.issue_ns_N[rows], spans.rank_N[rows]))]
    is_last = np.append(np.diff(spans.rank_N[order]) != 0, True) if len(order) else np.zeros(0, bool)
    last = order[is_last]
    is_open = spans.end_ns_N[last] == UNKNOWN
    num_R = np.bincount(spans.rank_N[rows], minlength=num_ranks)
    is_open_R = np.zeros(num_ranks, bool)
    is_open_R[spans.rank_N[last[is_open]]] = True
    return np.where(is_open_R, num_R, 0)


def _wait_fractions(spans: Spans, num_ranks: int) -> FloatArray:
    """Return what part of its time each rank waited for requests."""
    is_wait_N = (spans.kind_N == SpanKind.REQUEST) & (spans.end_ns_N != UNKNOWN) & (spans.start_ns_N != UNKNOWN)
    waited_R = np.bincount(
        spans.rank_N[is_wait_N],
        weights=(spans.end_ns_N - spans.start_ns_N)[is_wait_N].astype(float),
        minlength=num_ranks,
    )
    first_R, last_R = np.full(num_ranks, np.iinfo(np.int64).max), np.zeros(num_ranks, np.int64)
    is_over_N = spans.end_ns_N != UNKNOWN
    np.minimum.at(first_R, spans.rank_N[is_over_N], spans.issue_ns_N[is_over_N])
    np.maximum.at(last_R, spans.rank_N[is_over_N], spans.end_ns_N[is_over_N])
    total_R = (last_R - first_R).astype(float)
    fraction_R = np.full(num_ranks, np.nan)
    np.divide(waited_R, total_R, out=fraction_R, where=total_R > 0)
    return fraction_R
