"""The fit of costs: known parts are found again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.startup.storm.growth import fit_growth

SIZES = np.array([256, 512, 1024, 2048, 4096])


@given(st.floats(-100, 1e3), st.floats(1, 1e3), st.floats(0, 10))
def test_exact_costs_are_fitted_exactly(constant: float, linear: float, quadratic: float) -> None:
    """y = c + a n + b n² at five sizes gives a job of 12,288 ranks back."""

    def cost(num_ranks: float) -> float:
        return constant + linear * num_ranks + quadratic * num_ranks**2

    growth = fit_growth(SIZES, np.array([cost(size) for size in SIZES.tolist()]))
    assert growth.at(12_288) == pytest.approx(cost(12_288), rel=1e-6)
    assert growth.worst_error_fraction < 1e-6


def test_a_straight_line_has_exponent_one_and_a_parabola_two() -> None:
    """The slope of log y over log n."""
    assert fit_growth(SIZES, 3.0 * SIZES).exponent == pytest.approx(1)
    parabola = fit_growth(SIZES, SIZES.astype(float) ** 2)
    assert parabola.exponent == pytest.approx(2)
    assert parabola.quadratic_fraction(4096) == pytest.approx(1)


def test_no_part_is_negative() -> None:
    """Costs that grow more slowly than the ranks: a line through them, and no parabola bent down."""
    growth = fit_growth(SIZES, SIZES.astype(float) ** 0.8)
    assert growth.quadratic == 0
    assert growth.linear > 0
    assert growth.exponent == pytest.approx(0.8)
