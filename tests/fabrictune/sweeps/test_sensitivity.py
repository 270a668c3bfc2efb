"""Sensitivity indices against sums whose shares are known."""

import math

import numpy as np
import pytest

from fabrictune.foundation.seeds import stream
from fabrictune.sweeps.sensitivity import grouped, rank_correlation, variance_share


def test_a_sum_of_two_keys_has_their_shares() -> None:
    """y = 3a + b over a full grid of 10 x 10: Var = 9 Var(a) + Var(b), so a explains 90 % and b 10 %.

    The correction moves either by (1 - share) 9/90 at most.
    """
    a, b = (axis.ravel().astype(float) for axis in np.meshgrid(np.arange(10), np.arange(10)))
    assert variance_share(a, 3 * a + b) == pytest.approx(0.9, abs=0.011)
    assert variance_share(b, 3 * a + b) == pytest.approx(0.1, abs=0.091)


def test_a_product_is_no_key_s_own() -> None:
    """y = ab with a and b of -1 and 1: each mean is 0 whatever either is, so neither explains anything alone."""
    a, b = np.array([-1.0, -1, 1, 1]), np.array([-1.0, 1, -1, 1])
    assert variance_share(a, a * b) == variance_share(b, a * b) == 0


def test_chance_explains_nothing_on_average() -> None:
    """Noise over 200 drawn points, 200 times: the mean share of a key without effect stays near 0.

    Uncorrected, ten groups of 200 points would explain 9/199 = 4.5 %; cut off at 0, the corrected share is 1 % or so.
    """
    random = stream(1, "noise")
    shares = [variance_share(grouped(random.random(200)), random.random(200)) for _ in range(200)]
    assert np.mean(shares) < 0.02


def test_ranks_see_direction_and_not_shape() -> None:
    """exp is monotone: correlation 1; its negative -1; a parabola over both sides 0; ties share their rank."""
    x = np.arange(-5, 6).astype(float)
    assert rank_correlation(x, np.exp(x)) == pytest.approx(1)
    assert rank_correlation(x, -np.exp(x)) == pytest.approx(-1)
    assert rank_correlation(x, x**2) == pytest.approx(0)
    assert rank_correlation(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])) == pytest.approx(math.sqrt(3) / 2)


def test_what_cannot_be_told_is_not_told() -> None:
    """One group, as many groups as points, no variance."""
    x = np.arange(4.0)
    assert math.isnan(variance_share(np.zeros(4), x))
    assert math.isnan(variance_share(x, x))
    assert math.isnan(variance_share(np.array([0.0, 0, 1, 1]), np.ones(4)))
    assert math.isnan(rank_correlation(x, np.ones(4)))
