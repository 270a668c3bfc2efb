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


def test_an_extrapolation_has_its_interval() -> None:
    """Of 300 noisy growths (3 % a size) 19 of 20 intervals hold the truth at 16 times the largest size."""
    random = np.random.default_rng(3)
    sizes = np.array([16, 32, 48, 64, 96, 128])
    truth = 1e6 + 2e4 * sizes + 300.0 * sizes**2
    at = 2048
    expected = 1e6 + 2e4 * at + 300.0 * at**2
    growths = [fit_growth(sizes, truth * (1 + 0.03 * random.standard_normal(6))) for _ in range(300)]
    ends = [growth.interval(at) for growth in growths]
    assert np.mean([low <= expected <= high for low, high in ends]) > 0.9
    assert all(low >= 0 for low, _ in ends)


def test_noise_supports_no_extrapolation_far_beyond_the_sizes() -> None:
    """Linear costs with errors of 2 %: known to a factor of two at the largest size, but not at 24 times it."""
    sizes = np.array([64, 128, 192, 256, 384, 512])
    noisy = fit_growth(sizes, 0.01 * sizes * np.array([1.02, 0.98, 1.02, 0.98, 1.02, 0.98]))
    assert noisy.is_supported(512)
    assert not noisy.is_supported(12_288)
    assert fit_growth(SIZES, 5.0 + 3.0 * SIZES).is_supported(12_288)


def test_an_exact_growth_has_no_width() -> None:
    """A closed form that is one of constant, linear and quadratic part leaves no error."""
    growth = fit_growth(SIZES, 5.0 + 3.0 * SIZES)
    low, high = growth.interval(10_000)
    assert low == pytest.approx(30_005, rel=1e-3)
    assert high == pytest.approx(30_005, rel=1e-3)
