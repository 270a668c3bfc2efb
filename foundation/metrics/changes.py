"""Relative changes from one sample to another, with 95 % intervals.

The change of a mean is (mean of the second) / (mean of the first) - 1; its error follows from those of both means by
the delta method, with Student's t of Welch's degrees of freedom. Values that are of the same things in both samples, as
flows of the same messages, are pairs: what they have in common cancels. The change of a percentile is bootstrapped: the
k-th smallest of n values drawn anew from n is the one at a place that a beta variate gives, so that no sample is drawn.

Values of one sample are taken as independent. Shapes: N and M values of the two samples.

Source: Welch, "The generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34 (1947); Efron, "Bootstrap methods: another look at the jackknife", The Annals of Statistics 7 (1979).
"""

import math
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import ROUNDING, percentiles
from fabrictune.foundation.quantiles import student_t_95
from fabrictune.foundation.seeds import stream

MIN_VALUES = 3  # of which a mean has an interval
MIN_BEYOND = 10  # values on either side of a percentile that has one
NUM_DRAWS = 4_000
ENDS = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What the second is above the first, as a share of the first, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes no change, or there is none at all."""
        return self.low > 0 or self.high < 0 or self.low == self.high == 0


def change_of_means(first_N: FloatArray, second_M: FloatArray) -> Change | None:
    """Return the change from the mean of one sample to that of another; None where there is no interval."""
    if not _has_mean(first_N) or not _has_mean(second_M):
        return None
    ratio = float(second_M.mean() / first_N.mean())
    parts = [
        float(weight * np.var(values, ddof=1) / len(values))
        for weight, values in ((ratio**2, first_N), (1.0, second_M))
    ]
    spread = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (first_N, second_M), strict=True))
    freedom = sum(parts) ** 2 / spread if spread > 0 else 1.0
    return _around(ratio - 1, math.sqrt(sum(parts)) / float(first_N.mean()), freedom)


def change_of_pairs(first_N: FloatArray, second_N: FloatArray) -> Change | None:
    """Return the change from the mean of values to that of their partners; None where there is no interval."""
    assert len(first_N) == len(second_N), "each value has a partner"
    if not _has_mean(first_N) or not _has_mean(second_N):
        return None
    ratio = float(second_N.mean() / first_N.mean())
    error = float(np.std(second_N - ratio * first_N, ddof=1)) / math.sqrt(len(first_N)) / float(first_N.mean())
    return _around(ratio - 1, error, len(first_N) - 1)


def change_of_percentiles(first_N: FloatArray, second_M: FloatArray, fraction: float) -> Change | None:
    """Return the change from a percentile of one sample to that of another; None where there is no interval."""
    draws = [_drawn_percentiles(values, fraction, name) for values, name in ((first_N, "first"), (second_M, "second"))]
    first_D, second_D = draws
    if first_D is None or second_D is None or not first_D.min() > 0:
        return None
    value, low, high = (float(end) for end in (second_D[0] / first_D[0], *percentiles(second_D / first_D, ENDS)))
    return Change(value=value - 1, low=low - 1, high=high - 1)


def _has_mean(values: FloatArray) -> bool:
    return len(values) >= MIN_VALUES and bool(np.isfinite(values).all()) and float(values.mean()) > 0


def _around(value: float, error: float, freedom: float) -> Change:
    margin = student_t_95(round(freedom)) * error if error > 0 else 0.0
    return Change(value=value, low=max(value - margin, -1.0), high=value + margin)  # nothing is below zero


def _drawn_percentiles(values: FloatArray, fraction: float, name: str) -> FloatArray | None:
    """Return a sample's percentile, then those of NUM_DRAWS samples drawn from it; None where too few values are."""
    num, rank = len(values), math.ceil(fraction * len(values) - ROUNDING)
    if min(rank, num - rank) < MIN_BEYOND or not np.isfinite(values).all():
        return None
    shares_D = stream(0, "change", name).beta(rank, num + 1 - rank, NUM_DRAWS)
    places = np.minimum((num * shares_D).astype(np.int64), num - 1)
    result: FloatArray = np.sort(values)[np.concatenate([[rank - 1], places])].astype(np.float64)
    return result
