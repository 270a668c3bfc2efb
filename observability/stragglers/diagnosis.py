"""Diagnosis of a job's stragglers: what is slow, where, in which pattern, and what its removal would gain.

Clocks first, since all else compares times of ranks. Then own work against that of peers, links by their transfers,
collections of garbage and waits for data, which are no fault of the rank's own processor. What is found is removed from
the replayed schedule, one at a time, for its gain.

Shapes: R ranks, S steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.robust import (
    MIN_ERRORS,
    deviation,
    median_error,
    median_of_rows,
    over_peers,
)
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.observability.stragglers.arrivals import Arrivals, Pattern, arrivals_of
from fabrictune.observability.stragglers.clock_check import checked_clocks
from fabrictune.observability.stragglers.links import slow_links
from fabrictune.observability.stragglers.replay import (
    Program,
    program_of,
    step_time_ns,
    with_usual_transfers,
    with_usual_work,
    without_work,
)
from fabrictune.observability.stragglers.requests import JoinedRequests, join_requests
from fabrictune.observability.stragglers.work import PASSES, Work, common_steps, own_work, waits_for_data_ns

Cause = Literal["slow work", "slow link", "garbage collection", "data loading", "wrong clock"]
MIN_STEPS = 3
MIN_SIGMAS = 8.0
CLOCK_FRACTION = 0.01  # of a step
MAX_GAINS = 8  # stragglers whose gain is predicted, the slowest
MIN_CONSECUTIVE = 3  # slow steps of one that passes


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is too much, as fractions."""

    slow_work: float = 0.04  # of the peers' work
    stalls: float = 0.02  # of the step, by collections of garbage on some rank
    loading: float = 0.05  # of the step, by waits for data


@dataclass(frozen=True, kw_only=True)
class Straggler:
    """A cause that makes others wait, and where it is; no ranks: in the whole job."""

    cause: Cause
    ranks: tuple[int, ...]
    pattern: Pattern
    excess_fraction: float  # over peers or the usual transfer; of stalls and data, of the step
    steps_fraction: float  # of all steps, in which it is seen
    offset_ns: int = 0  # of a wrong clock
    gain_fraction: float | None = None  # of the step's time, predicted by the replay


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Stragglers of a job, the largest gain first, and what they rest on."""

    spans: Spans  # of the steps that were looked at, wrong clocks moved
    work: Work
    ratio_RS: FloatArray  # a rank's own passes over those of its peers
    stragglers: tuple[Straggler, ...]
    arrivals: tuple[Arrivals, ...]
    step_ns: float
    replayed_step_ns: float
    joined: JoinedRequests
    notes: tuple[str, ...] = field(default=())


def diagnose(spans: Spans, limits: Limits | None = None) -> Diagnosis:
    """Return the diagnosis of a job's spans; raises TraceError where ranks have too few steps in common."""
    limits = limits or Limits()
    common = common_steps(spans)
    num_steps = len(np.unique(common.step_N))
    if num_steps < MIN_STEPS:
        found = f"{num_steps} steps that all ranks have whole, the first one left out"
        raise TraceError(Mistake(where="spans", found=found, allowed=f"{MIN_STEPS} or more", next_step="train longer"))
    step_ns = float(np.nanmedian(own_work(common).step_ns_RS))
    common, offset_ns_R, wrong = checked_clocks(common, least_ns=CLOCK_FRACTION * step_ns)
    work, joined = own_work(common), join_requests(common)
    passes_RS = sum_of(work, PASSES)
    ratio_RS = over_peers(passes_RS, work.peers_R)
    slow = list(_slow_work(ratio_RS, limits))
    stragglers = [
        *(_wrong_clock(rank, offset_ns_R, step_ns) for rank in wrong.tolist()),
        *slow,
        *_slow_links(common, joined, step_ns, {rank for straggler in slow for rank in straggler.ranks}),
        *_stalls(work, step_ns, limits),
        *_loading(work, step_ns, limits),
    ]
    program = program_of(common, joined)
    replayed_ns = step_time_ns(program)
    judged = _with_gains(stragglers, common, joined, program, work, replayed_ns)
    return Diagnosis(
        spans=common,
        work=work,
        ratio_RS=ratio_RS,
        stragglers=tuple(sorted(judged, key=lambda one: -(one.gain_fraction or 0.0))),
        arrivals=arrivals_of(common, joined, step_ns=step_ns),
        step_ns=step_ns,
        replayed_step_ns=replayed_ns,
        joined=joined,
        notes=tuple(_notes(spans, common, work, joined)),
    )


def sum_of(work: Work, kinds: tuple[SpanKind, ...]) -> FloatArray:
    """Return the sum of own work over kinds, R S; NaN where a rank has none of them in a step."""
    parts = np.stack(
        [work.own_ns[kind] for kind in kinds if kind in work.own_ns] or [np.full_like(work.step_ns_RS, np.nan)]
    )
    return np.where(np.isfinite(parts).any(axis=0), np.nansum(parts, axis=0), np.nan)


def _wrong_clock(rank: int, offset_ns_R: FloatArray, step_ns: float) -> Straggler:
    offset_ns = round(float(offset_ns_R[rank]))
    excess = abs(offset_ns) / step_ns
    return Straggler(
        cause="wrong clock",
        ranks=(rank,),
        pattern="same",
        excess_fraction=excess,
        steps_fraction=1.0,
        offset_ns=offset_ns,
        gain_fraction=0.0,
    )


def _slow_work(ratio_RS: FloatArray, limits: Limits) -> Iterator[Straggler]:
    """Yield the ranks slower than their peers: in the median step, or in a row of steps."""
    usual_R = median_of_rows(ratio_RS) - 1
    error = median_error(ratio_RS - 1 - usual_R[:, None], ratio_RS.shape[1])  # by all ranks, since steps are few
    least = max(limits.slow_work, MIN_SIGMAS * deviation(usual_R), MIN_ERRORS * error)
    least_cell = max(2 * limits.slow_work, MIN_SIGMAS * deviation(ratio_RS - 1))
    for rank in np.flatnonzero(np.isfinite(usual_R)).tolist():
        is_slow_S = ratio_RS[rank] - 1 > least_cell
        if usual_R[rank] > least:
            yield _straggler(
                "slow work", rank, "same", float(usual_R[rank]), float((ratio_RS[rank] - 1 > least).mean())
            )
        elif (length := _longest_run(is_slow_S)) >= MIN_CONSECUTIVE:
            excess = float(np.mean(ratio_RS[rank][is_slow_S] - 1))
            yield _straggler("slow work", rank, "passing", excess, length / len(is_slow_S))


def _slow_links(spans: Spans, joined: JoinedRequests, step_ns: float, slow: set[int]) -> Iterator[Straggler]:
    """Yield slow links, but those of ranks that are slow: whose processor is held sends and receives late too."""
    for link in slow_links(spans, joined, step_ns=step_ns):
        if slow.intersection(link.ranks):
            continue
        found = _straggler("slow link", link.ranks[0], "same", link.excess_fraction, 1.0)
        yield replace(found, ranks=link.ranks)


def _stalls(work: Work, step_ns: float, limits: Limits) -> Iterator[Straggler]:
    """Yield collections of garbage that stop ranks at different steps; those of all at once count once."""
    stalls_RS = work.own_ns.get(SpanKind.GARBAGE_COLLECTION)
    if stalls_RS is None:
        return
    stalls_RS = np.nan_to_num(stalls_RS)
    worst_S = stalls_RS.max(axis=0)
    share = float(worst_S.sum() / (len(worst_S) * step_ns))
    if share <= limits.stalls:
        return
    by_rank = stalls_RS.sum(axis=1)
    worst = int(by_rank.argmax())
    is_one = by_rank[worst] > by_rank.sum() / 2
    seen = float((worst_S > limits.stalls * step_ns).mean())
    found = _straggler("garbage collection", worst, "same" if is_one else "rotating", share, seen)
    yield found if is_one else replace(found, ranks=())


def _loading(work: Work, step_ns: float, limits: Limits) -> Iterator[Straggler]:
    """Yield the ranks that wait for data longer than others, or the job where all do."""
    waits_R = waits_for_data_ns(work)
    if waits_R is None:
        return
    loading_RS, share_R = work.own_ns[SpanKind.LOADER], waits_R / step_ns
    usual = float(np.nanmedian(share_R))
    if usual > limits.loading:
        yield replace(_straggler("data loading", 0, "same", usual, 1.0), ranks=())
    least = usual + max(limits.loading, MIN_SIGMAS * deviation(share_R))
    for rank in np.flatnonzero(share_R > least).tolist():
        is_seen_S = np.nan_to_num(loading_RS[rank]) > limits.loading * step_ns
        pattern: Pattern = "same" if is_seen_S.mean() > 0.1 else "passing"
        yield _straggler("data loading", rank, pattern, float(share_R[rank]), float(is_seen_S.mean()))


def _with_gains(
    found: list[Straggler],
    spans: Spans,
    joined: JoinedRequests,
    program: Program,
    work: Work,
    replayed_ns: float,
) -> Iterator[Straggler]:
    ranked = sorted(found, key=lambda straggler: -straggler.excess_fraction)
    for place, straggler in enumerate(ranked):
        if straggler.gain_fraction is not None or place >= MAX_GAINS:
            yield straggler
            continue
        without = _without(straggler, spans, joined, program, work)
        yield replace(straggler, gain_fraction=max(0.0, 1 - step_time_ns(without) / replayed_ns))


def _without(straggler: Straggler, spans: Spans, joined: JoinedRequests, program: Program, work: Work) -> Program:
    everyone: IntArray = program.ranks
    if straggler.cause == "slow work":
        rank = straggler.ranks[0]
        return with_usual_work(program, rank, np.flatnonzero(work.peers_R == work.peers_R[rank]))
    if straggler.cause == "slow link":
        for rank in straggler.ranks:
            program = with_usual_transfers(program, joined, rank)
        return program
    ranks = np.array(straggler.ranks) if straggler.ranks else everyone
    if straggler.cause == "garbage collection":
        return without_work(program, spans, SpanKind.GARBAGE_COLLECTION, ranks)
    loading_RS = work.own_ns[SpanKind.LOADER]
    usual_ns = float(np.nanmedian(loading_RS)) if straggler.ranks else 0.0
    return without_work(program, spans, SpanKind.LOADER, ranks, usual_ns=usual_ns)


def _notes(spans: Spans, common: Spans, work: Work, joined: JoinedRequests) -> Iterator[str]:
    """Yield what was not read or rests on an assumption."""
    num_ranks = spans.layout.world_size
    missing = num_ranks - len(np.unique(spans.rank_N))
    if missing:
        yield f"{missing} of {num_ranks} ranks have no spans; their requests are not joined"
    if num_dropped := int(spans.num_dropped_R.sum()):
        yield f"{num_dropped:,} earlier spans are not kept, or not read"
    num_steps, num_read = len(work.steps), len(np.unique(spans.step_N))
    if num_steps < num_read:
        yield f"{num_steps} of {num_read} steps are looked at: the newest that all ranks have, without the first"
    sizes = np.unique(work.peers_R[np.unique(common.rank_N)], return_counts=True)[1]
    if (sizes < 3).any():
        yield "pipeline places with fewer than 3 ranks have no peers to compare own work with"
    if not joined.num_requests:
        yield "no request joins ranks: who arrives last, links and gains are not known"
    error_ns = int(common.clock_error_ns_R.max())
    if error_ns > 0:
        yield f"clocks of ranks are compared to {error_ns / 1e6:.3f} ms at the start"


def _straggler(cause: Cause, rank: int, pattern: Pattern, excess: float, steps: float) -> Straggler:
    return Straggler(cause=cause, ranks=(rank,), pattern=pattern, excess_fraction=excess, steps_fraction=steps)


def _longest_run(is_slow_S: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
    longest = length = 0
    for is_slow in is_slow_S.tolist():
        length = length + 1 if is_slow else 0
        longest = max(longest, length)
    return longest
