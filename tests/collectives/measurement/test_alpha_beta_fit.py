"""A line through times."""

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
