"""Formulas of metrics, on values that can be worked out by hand."""

import numpy as np
import pytest

from fabrictune.foundation.metrics.formulas import (
    jain_fairness_index,
    max_to_mean_ratio,
    percentile,
    percentiles,
)


def test_fairness_is_one_when_equal_and_one_nth_when_one_has_all() -> None:
    """Jain's index of n equal rates is 1; of (1, 0, 0, 0) it is 1 / 4; of 1, 2, 3 it is 36 / (3 * 14) = 6/7."""
    assert jain_fairness_index(np.full(7, 3.0)) == pytest.approx(1)
    assert jain_fairness_index(np.array([1.0, 0, 0, 0])) == pytest.approx(0.25)
    assert jain_fairness_index(np.array([1.0, 2, 3])) == pytest.approx(6 / 7)


def test_whole_numbers_do_not_overflow() -> None:
    """The square of 4e18 bytes is beyond 64 bits."""
    assert jain_fairness_index(np.array([4 * 10**18, 4 * 10**18])) == pytest.approx(1)


def test_no_shares_have_no_index() -> None:
    """Where nothing was shared, 0 / 0."""
    assert np.isnan(jain_fairness_index(np.zeros(3)))


def test_max_to_mean_of_an_even_load_is_one() -> None:
    """Loads 3, 3, 3 have MMR 1; loads 6, 3, 0 have 6 / 3 = 2."""
    assert max_to_mean_ratio(np.array([3.0, 3, 3])) == 1
    assert max_to_mean_ratio(np.array([6.0, 3, 0])) == 2


def test_a_percentile_is_a_value_that_occurred() -> None:
    """Nearest rank of 1..1000: p99 is the 990th, p99.9 the 999th, p50 the 500th; of 1..100, p99 is the 99th.

    0.99 * 700 is 693 and no more, whatever its binary fraction says.
    """
    values = np.arange(1000, 0, -1)
    assert [percentile(values, share) for share in (0.5, 0.99, 0.999, 1)] == [500, 990, 999, 1000]
    assert percentile(np.arange(1, 101), 0.99) == 99
    assert percentile(np.arange(1, 701), 0.99) == 693
    assert percentile([4], 0) == 4


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0])
def test_a_percentile_is_the_least_value_that_enough_do_not_exceed(fraction: float) -> None:
    """The definition, word for word, on 57 values with ties."""
    values = np.random.default_rng(7).integers(0, 20, 57)
    enough = [value for value in values if (values <= value).mean() >= fraction]
    assert percentile(values, fraction) == min(enough)


def test_percentiles_are_along_the_last_axis_and_may_be_infinite() -> None:
    """Two rows of four: the second half of the second never ended."""
    values = np.array([[4.0, 3, 2, 1], [1, np.inf, 2, np.inf]])
    assert percentiles(values, (0.5, 0.75)).tolist() == [[2, 2], [3, np.inf]]


def test_no_values_have_no_percentile() -> None:
    """nan of none, one for each row."""
    assert np.isnan(percentile([], 0.5))
    assert percentiles(np.zeros((3, 0)), (0.5, 0.9)).shape == (2, 3)
