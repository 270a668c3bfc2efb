"""Intervals that hold the truth as often as they say."""

import math

import numpy as np
import pytest

from fabrictune.foundation.quantiles import student_t_95
from fabrictune.topology.ecmp.estimates import estimate_mean, estimate_share, exactly_known


def test_the_mean_of_four_by_hand() -> None:
    """1, 2, 3, 4: mean 2.5, deviation 1.291, t(3) = 3.182: 2.5 +- 2.054."""
    estimate = estimate_mean([1, 2, 3, 4])
    assert estimate.value == 2.5
    assert estimate.half_width == pytest.approx(3.182 * math.sqrt(5 / 3) / 2, rel=2e-3)
    assert estimate.low + estimate.high == pytest.approx(5.0)


@pytest.mark.parametrize(("freedom", "quantile"), [(3, 3.1824), (9, 2.2622), (29, 2.0452), (99, 1.9842)])
def test_students_quantiles_are_the_tables(freedom: int, quantile: float) -> None:
    """Half a width over the standard error is the quantile; tables agree to 0.2 % from 3 degrees on."""
    sample = np.arange(freedom + 1.0)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    assert estimate_mean(sample).half_width / error == pytest.approx(quantile, rel=2e-3)


def test_an_interval_stays_within_what_is_possible() -> None:
    """Shares near one do not exceed it, and one value alone leaves all of it open."""
    assert estimate_mean([1.0, 1.0, 0.7], lowest=0.0, highest=1.0).high == 1.0
    alone = estimate_mean([0.4], lowest=0.0, highest=1.0)
    assert (alone.value, alone.low, alone.high) == (0.4, 0.0, 1.0)


def test_two_values_have_a_spread_and_one_has_none() -> None:
    """0 and 2: 1 plus and minus the quantile of one degree of freedom. One value may be anywhere."""
    pair, alone = estimate_mean([0.0, 2.0]), estimate_mean([0.4])
    assert (pair.low, pair.high) == pytest.approx((1 - student_t_95(1), 1 + student_t_95(1)))
    assert (alone.low, alone.high) == (-math.inf, math.inf)


def test_no_share_leaves_nought_to_one() -> None:
    """The ends of all of n, and of none, are 1 and 0 but for rounding, which exceeds them for one n of eight."""
    for number in range(1, 60):
        all_of_them, none_of_them = estimate_share([True] * number), estimate_share([False] * number)
        assert 1 - 1e-12 < all_of_them.high <= 1.0
        assert 0.0 <= none_of_them.low < 1e-12


def test_wilsons_interval_by_hand() -> None:
    """10 of 10: the lower end is n / (n + z^2) = 10 / 13.8415 = 0.7225; half of 10: 0.2366 to 0.7634."""
    assert estimate_share([True] * 10).low == pytest.approx(0.72247, abs=1e-5)
    half = estimate_share([True, False] * 5)
    assert [half.value, half.low, half.high] == pytest.approx([0.5, 0.23659, 0.76341], abs=1e-5)


def test_intervals_hold_the_truth_nineteen_times_of_twenty() -> None:
    """2,000 samples of ten: means and shares are inside 95 % of the time, within four standard errors (2 %)."""
    draw = np.random.default_rng(1)
    means = [estimate_mean(draw.normal(3.0, 2.0, 10)) for _ in range(2000)]
    shares = [estimate_share(draw.random(40) < 0.3) for _ in range(2000)]
    for estimates, truth in ((means, 3.0), (shares, 0.3)):
        inside = np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])
        assert 0.93 <= inside <= 0.97


def test_what_is_known_has_no_width() -> None:
    """Both ends are the value."""
    assert exactly_known(0.5).half_width == 0.0
