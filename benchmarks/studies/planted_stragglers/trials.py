"""One trial: a job with a planted fault, or none, and what the diagnosis names in it."""

from dataclasses import dataclass

import numpy as np

from benchmarks.studies.planted_stragglers.faults import FAULTS
from benchmarks.studies.planted_stragglers.jobs import SIZES, Disturbance, JobSize, simulate
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.observability.stragglers.diagnosis import Straggler, diagnose


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a diagnosis named."""

    fault: str  # "" for a clean job
    size: int
    seed: int
    is_detected: bool  # something was named
    is_right: bool  # its cause is named
    is_located: bool  # with the rank
    num_named: int
    num_right: int  # of these
    predicted_gain: float
    measured_gain: float  # by the same job without the fault


def try_fault(fault: str, size: int, seed: int) -> Trial:
    """Return the trial of a planted fault, "" for a clean job."""
    random, shape = np.random.default_rng([seed, size]), SIZES[size]
    planted = FAULTS[fault](shape, random) if fault else None
    spans = simulate(shape, planted.disturbance if planted else Disturbance.none(shape), seed)
    named = diagnose(spans).stragglers
    right = [one for one in named if planted and one.cause == planted.cause]
    located = [one for one in right if planted and _is_at(one, planted.rank)]
    gain = located[0].gain_fraction if located else None
    return Trial(
        fault=fault,
        size=size,
        seed=seed,
        is_detected=bool(named),
        is_right=bool(right),
        is_located=bool(located),
        num_named=len(named),
        num_right=len(located),
        predicted_gain=gain if gain is not None else np.nan,
        measured_gain=_measured_gain(spans, shape, seed) if fault else 0.0,
    )


def _is_at(straggler: Straggler, rank: int | None) -> bool:
    return straggler.ranks == (() if rank is None else (rank,))


def _measured_gain(disturbed: Spans, shape: JobSize, seed: int) -> float:
    clean = simulate(shape, Disturbance.none(shape), seed)
    return 1 - _step_ns(clean) / _step_ns(disturbed)


def _step_ns(spans: Spans) -> float:
    """Return the mean time of a step without the first."""
    is_step = (spans.kind_N == SpanKind.STEP) & (spans.step_N > 0) & (spans.rank_N == 0)
    return float((spans.end_ns_N[is_step].max() - spans.start_ns_N[is_step].min()) / is_step.sum())
