"""A line through times."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.measurement.alpha_beta_fit import fit_line


@given(st.floats(1, 1e6), st.floats(1e-3, 1e3))
def test_points_of_a_line_give_it_back(alpha: float, beta: float) -> None:
    """Whatever alpha and beta are, from 8 B to 1 GB."""
    sizes = [8, 10**4, 10**6, 10**9]
    line = fit_line(sizes, [alpha + beta * size for size in sizes])
    assert line.alpha == pytest.approx(alpha, rel=1e-4)
    assert line.beta == pytest.approx(beta, rel=1e-4)


def test_small_times_count_as_much_as_large_ones() -> None:
    """10 % too much at 1 GB moves alpha by less than 10 %; plain least squares would have lost it altogether."""
    sizes = [8, 10**3, 10**6, 10**9]
    times = [1000.0 + size for size in sizes]
    times[-1] *= 1.1
    assert fit_line(sizes, times).alpha == pytest.approx(1000, rel=0.1)


def test_the_intervals_hold_the_truth_19_times_of_20() -> None:
    """Of 400 noisy lines (2 % a time), 95 % of the intervals of each parameter, within four standard deviations."""
    random = np.random.default_rng(7)
    sizes = np.geomspace(1024, 2**26, 9)
    truth = 20_000.0 + 0.05 * sizes
    lines = [fit_line(sizes, truth * (1 + 0.02 * random.standard_normal(9))) for _ in range(400)]
    for held in (
        [line.alpha_interval[0] <= 20_000 <= line.alpha_interval[1] for line in lines],
        [line.beta_interval[0] <= 0.05 <= line.beta_interval[1] for line in lines],
    ):
        assert 0.95 - 0.044 < np.mean(held) <= 0.95 + 0.044


def test_two_sizes_leave_no_interval() -> None:
    """A line goes through any two points."""
    line = fit_line([8, 1024], [1.0, 2.0])
    assert line.alpha_interval == (-math.inf, math.inf)
    assert line.may_be_physical


def test_a_negative_cost_beyond_its_errors_is_no_line() -> None:
    """A second a megabyte less 0.3 s, give or take 0.2 %; with errors of 20 % the truth may be 0."""
    steep = fit_line([1e6, 2e6, 4e6, 8e6], [0.7 * 1.002, 1.7 * 0.998, 3.7 * 1.002, 7.7 * 0.998])
    assert steep.alpha_interval[0] < -0.3 < steep.alpha_interval[1]
    assert not steep.may_be_physical
    unsure = fit_line([1e6, 2e6, 4e6, 8e6], [0.8, 2.2, 3.9, 8.9])
    assert unsure.alpha < 0
    assert unsure.may_be_physical
