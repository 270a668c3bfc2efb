"""Where more of a network stops to matter."""

import math

import numpy as np
import pytest

from fabrictune.validate.whatif_points import amount_text, knee_amount, spread_of_seeds, spread_of_sources

RATES = np.array([50e9, 100e9, 200e9, 400e9])


def test_the_knee_lies_where_the_excess_falls_to_one_percent() -> None:
    """3 % at 100 Gbps and none at 200: 1 % two thirds of the way in the logarithm, 100 * 2 ** (2 / 3) = 158.7."""
    found = knee_amount(RATES, np.array([1.10, 1.03, 1.00, 1.00]), is_between=True)
    assert found == pytest.approx(158.74e9, rel=1e-4)


def test_tried_values_have_nothing_between() -> None:
    """The same, of values that have none between: the least that is enough."""
    assert knee_amount(RATES, np.array([1.10, 1.03, 1.005, 1.00]), is_between=False) == 200e9


def test_where_the_least_is_enough_it_is_the_knee() -> None:
    """Nothing changes: 50 Gbps are enough, and nobody tried less."""
    assert knee_amount(RATES, np.array([1.009, 1.0, 1.0, 1.0]), is_between=True) == 50e9


def test_where_only_the_most_is_enough_more_may_matter() -> None:
    """2 % still from 200 to 400 Gbps: beyond what was tried."""
    assert knee_amount(RATES, np.array([1.2, 1.1, 1.02, 1.0]), is_between=True) == math.inf


def test_a_step_that_is_long_again_later_puts_the_knee_behind_it() -> None:
    """Enough at 50 and 200 Gbps but not at 100: from 200 on."""
    assert knee_amount(RATES, np.array([1.0, 1.05, 1.0, 1.0]), is_between=False) == 200e9


def test_the_interval_of_seeds_reaches_from_the_least_to_the_most() -> None:
    """Three seeds with knees of their own, one beyond what was tried."""
    assert spread_of_seeds(150.0, [140.0, 160.0, math.inf]) == (140.0, math.inf)


def test_sources_add_as_roots_of_squares_of_logarithms() -> None:
    """Twice as much and half as much by each of two: 2 ** sqrt(2) either way; one that is beyond makes it so."""
    low, high = spread_of_sources(100.0, [(50.0, 200.0), (200.0, 50.0)])
    assert (low, high) == pytest.approx((100 / 2 ** math.sqrt(2), 100 * 2 ** math.sqrt(2)))
    assert spread_of_sources(100.0, [(100.0, math.inf)]) == (100.0, math.inf)
    assert spread_of_sources(math.inf, [(200.0, math.inf)]) == (200.0, math.inf)


def test_amounts_read_as_their_values() -> None:
    """A rate with its unit, an oversubscription as a ratio."""
    assert amount_text("NIC rate", 158.74e9) == "159 Gbps"
    assert amount_text("oversubscription", 0.25) == "4:1"
    assert amount_text("engine.mtu", 4096.0) == "4096"
