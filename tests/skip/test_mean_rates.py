"""The prediction of bounded skip: kernel and reference are equal, and intervals hold what they say."""

import math

import numpy as np
import pytest

from fabrictune.netsim import _engine
from fabrictune.netsim.reference.mean_rates import (
    FEWEST_WINDOWS,
    MOST_WINDOWS,
    T_QUANTILES,
    estimate_mean_rate,
    half_width_packets,
)

FIELDS = ("mean", "deviation", "decline", "window_ps", "num_windows", "is_stationary")
WINDOW_PS = 2e7


def series(dice: np.random.Generator, num: int, deviation: float = 0.03, slope: float = 0.0) -> list[float]:
    """Return rates of windows: noise about a mean, and perhaps a trend."""
    noise_N = dice.normal(1, deviation, num) + slope * np.arange(num)
    return [0.003 * max(float(noise), 0.0) for noise in noise_N]


@pytest.mark.parametrize("seed", range(200))
def test_the_kernel_computes_what_the_reference_computes(seed: int) -> None:
    """To the last bit, for series of all lengths, constants and zeros among them."""
    dice = np.random.default_rng([seed, 67])
    num_given = int(dice.integers(0, MOST_WINDOWS + 1))
    rates = [0.003] * num_given if seed % 7 == 0 else series(dice, num_given, slope=float(dice.choice([0, 0.05])))
    if seed % 11 == 0:
        rates = [0.0] * num_given
    in_flight = dice.integers(0, 300, num_given).astype(float).tolist()
    lengths_ps = dice.integers(10**6, 10**8, num_given).astype(float).tolist()
    num = num_given + int(dice.integers(0, 40)) * (num_given == MOST_WINDOWS)
    truth = estimate_mean_rate(rates, in_flight, lengths_ps, num)
    ours = _engine.estimate_mean_rate(rates, in_flight, lengths_ps, num)
    if truth is None:
        assert ours.num_windows == 0
        assert not ours.is_stationary
        return
    assert [getattr(ours, name) for name in FIELDS] == [getattr(truth, name) for name in FIELDS]
    for span_ps in (1e6, 3.3e8):
        assert _engine.half_width_packets(ours, span_ps) == half_width_packets(truth, span_ps)


def test_quantiles_are_students() -> None:
    """The density's integral up to each quantile is 97.5 %."""
    for degrees, quantile in enumerate(T_QUANTILES, 1):
        scale = math.gamma((degrees + 1) / 2) / (math.sqrt(degrees * math.pi) * math.gamma(degrees / 2))
        x_N = np.linspace(0, quantile, 200_001)
        density_N = scale * (1 + x_N**2 / degrees) ** (-(degrees + 1) / 2)
        assert 0.5 + np.trapezoid(density_N, x_N) == pytest.approx(0.975, abs=2e-5)


@pytest.mark.parametrize("num", [FEWEST_WINDOWS, 8])
@pytest.mark.parametrize("ahead", [4, 16])
def test_intervals_cover_what_comes(num: int, ahead: int) -> None:
    """Of independent windows at least 93 % of the sums that follow lie inside; the two packets at the ends help."""
    dice = np.random.default_rng([num, ahead])
    num_inside = num_stationary = 0
    for _ in range(2_000):
        rates = series(dice, num + ahead)
        rate = estimate_mean_rate(rates[:num], [10.0] * num, [WINDOW_PS] * num, num)
        assert rate is not None
        if not rate.is_stationary:
            continue
        num_stationary += 1
        packets = sum(rates[num:]) * WINDOW_PS
        width = half_width_packets(rate, ahead * WINDOW_PS)
        num_inside += abs(packets - rate.mean * ahead * WINDOW_PS) <= width
    assert num_stationary > 1_800  # 95 % where nothing trends
    assert num_inside > 0.93 * num_stationary


def test_a_trend_is_not_stationary() -> None:
    dice = np.random.default_rng(5)
    rate = estimate_mean_rate(series(dice, 6, deviation=0.003, slope=0.05), [0.0] * 6, [WINDOW_PS] * 6, 6)
    assert rate is not None
    assert not rate.is_stationary


def test_what_arrives_faster_than_it_leaves_widens_the_interval() -> None:
    """A queue that empties hides that its sender is slower than its goodput."""
    steady = estimate_mean_rate([0.003] * 4, [50.0] * 4, [WINDOW_PS] * 4, 4)
    emptying = estimate_mean_rate([0.003] * 4, [80.0, 70.0, 60.0, 50.0], [WINDOW_PS] * 4, 4)
    assert steady is not None
    assert emptying is not None
    assert emptying.decline == 10
    wider = half_width_packets(emptying, 8 * WINDOW_PS)
    assert wider == half_width_packets(steady, 8 * WINDOW_PS) + 80
