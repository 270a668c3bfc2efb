"""Relative changes between samples: by hand, and against samples drawn anew."""

import numpy as np
import pytest

from fabrictune.foundation.metrics.changes import (
    Change,
    change_of_means,
    change_of_pairs,
    change_of_percentiles,
)
from fabrictune.foundation.metrics.formulas import percentile, percentiles
from fabrictune.foundation.seeds import stream


def test_a_mean_changes_by_what_the_arithmetic_says() -> None:
    """Means 10 and 12: +20 %. Variances 1 and 4, four values each, so the error is sqrt(1.2² / 4 + 4 / 4) / 10.

    Welch: (0.36 + 1)² / (0.36² / 3 + 1² / 3) = 4.9 degrees of freedom, rounded to 5, where t is 2.571.
    """
    unit = np.array([-1.0, -1.0, 1.0, 1.0]) * np.sqrt(3) / 2  # of variance 1
    change = change_of_means(10 + unit, 12 + 2 * unit)
    assert change is not None
    assert change.value == pytest.approx(0.2)
    assert change.high - change.value == pytest.approx(2.571 * np.sqrt(1.36) / 10, rel=1e-3)
    assert change.value - change.low == pytest.approx(change.high - change.value)
    assert not change.is_sure


def test_pairs_cancel_what_they_have_in_common() -> None:
    """Each flow takes 10 % longer: sure of it to the last digit, though flows differ by a factor of 100."""
    first = np.geomspace(1, 100, 20)
    paired, apart = change_of_pairs(first, 1.1 * first), change_of_means(first, 1.1 * first)
    assert paired is not None
    assert (paired.low, paired.high) == pytest.approx((0.1, 0.1))
    assert paired.is_sure
    assert apart is not None
    assert not apart.is_sure


def test_a_percentile_is_bootstrapped_as_samples_drawn_anew_would_be() -> None:
    """The p90 of 400 values against one of 600: the interval of 4,000 samples drawn anew is the same within 2 %."""
    random = stream(1, "test")
    first, second = random.exponential(1.0, 400), random.exponential(1.3, 600)
    change = change_of_percentiles(first, second, 0.9)
    ratios = [
        percentile(random.choice(second, 600), 0.9) / percentile(random.choice(first, 400), 0.9) for _ in range(4000)
    ]
    assert change is not None
    assert change.value == pytest.approx(percentile(second, 0.9) / percentile(first, 0.9) - 1)
    assert (1 + change.low, 1 + change.high) == pytest.approx(percentiles(ratios, (0.025, 0.975)), rel=0.02)


def test_intervals_hold_the_true_change_nearly_as_often_as_they_say() -> None:
    """Of 400 pairs of samples whose true change is +20 %, 95 % have it within: 380, give or take 4 errors of 4.4."""
    random = stream(2, "test")
    means, percentiles = 0, 0
    for _ in range(400):
        first, second = random.normal(10, 1, 60), random.normal(12, 1.2, 60)
        mean, median = change_of_means(first, second), change_of_percentiles(first, second, 0.5)
        assert mean is not None
        assert median is not None
        means += mean.low <= 0.2 <= mean.high
        percentiles += median.low <= 0.2 <= median.high
    assert abs(means - 380) <= 18
    assert abs(percentiles - 380) <= 18


def test_no_interval_where_there_is_nothing_to_make_one_from() -> None:
    """Two values, a time that never ended, a first mean of zero, and a p99 of 900 values, nine of them beyond."""
    values = np.arange(1.0, 901)
    assert change_of_means(values[:2], values) is None
    assert change_of_pairs(values, np.where(values == 7, np.inf, values)) is None
    assert change_of_means(np.zeros(5), values) is None
    assert change_of_percentiles(values, values, 0.99) is None
    assert change_of_percentiles(np.append(values, np.inf), values, 0.5) is None
    assert change_of_percentiles(np.zeros(100), values, 0.5) is None


def test_equal_values_have_an_interval_of_no_width() -> None:
    """Seeds that change nothing: it is sure that nothing changes."""
    same = np.full(3, 5.0)
    assert change_of_means(same, same) == change_of_pairs(same, same) == Change(value=0.0, low=0.0, high=0.0)
    assert Change(value=0.0, low=0.0, high=0.0).is_sure
