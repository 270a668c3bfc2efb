"""Reference of bounded skip's prediction: what windows tell of a queue pair's mean rate, and how far it may be off.

The engine's kernel (netsim/engine/skip/stationary.hpp) computes the same to the last bit.

Source: A. M. Law, "Simulation Modeling and Analysis", 5th edition, sections 9.5.3 (batch means) and 9.5.1 (initial data
deleted); quantiles of Student's t to five digits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST_WINDOWS, MOST_WINDOWS = 4, 16
END_PACKETS = 2.0  # a span begins and ends between two packets
ROUNDING = 1e-9  # what rounding makes of a constant is no trend

# Of Student's t, 97.5 %, by degrees of freedom from 1.
T_QUANTILES = (
    *(12.706, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060),
    *(2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199),
)


@dataclass(frozen=True, kw_only=True)
class MeanRate:
    """What windows tell of a queue pair."""

    mean: float  # packets acknowledged a picosecond
    deviation: float  # of a window's rate
    decline: float  # of what is in flight, packets a window; 0 if it grows
    window_ps: float  # mean length
    num_windows: int
    is_stationary: bool


def estimate_mean_rate(
    rates: Sequence[float], in_flight: Sequence[float], lengths_ps: Sequence[float], num: int
) -> MeanRate | None:
    """Return what `num` windows since a change tell, of which the last are given; None for too few.

    Initial data are left out: the later half of the windows counts, four or more.
    """
    num_used = min(max((num + 1) // 2, FEWEST_WINDOWS), MOST_WINDOWS)
    if num_used > len(rates):
        return None
    used = rates[len(rates) - num_used :]
    mean = sum(used, 0.0) / num_used
    slope, error = trend(used, mean)
    held = in_flight[len(rates) - num_used :]
    return MeanRate(
        mean=mean,
        deviation=math.sqrt(_squares_about(used, mean) / (num_used - 1)),
        decline=max((held[0] - held[-1]) / (num_used - 1), 0.0),
        window_ps=sum(lengths_ps[len(rates) - num_used :], 0.0) / num_used,
        num_windows=num_used,
        is_stationary=mean > 0 and abs(slope) <= T_QUANTILES[num_used - 3] * error + ROUNDING * mean,
    )


def trend(values: Sequence[float], mean: float) -> tuple[float, float]:
    """Return the slope of a straight line through a series, by least squares, and its standard error."""
    product, squares = 0.0, 0.0
    for place, value in enumerate(values):
        from_middle = place - (len(values) - 1) / 2
        product += from_middle * (value - mean)
        squares += from_middle * from_middle
    slope = product / squares
    left = max(_squares_about(values, mean) - slope * product, 0.0)
    return slope, math.sqrt(left / (len(values) - 2) / squares)


def half_width_packets(rate: MeanRate, span_ps: float) -> float:
    """Return how many packets more or fewer than its mean a pair may send in the next `span_ps`, at 95 %.

    What the spread of windows tells, and what arrives faster than it leaves.
    """
    num = float(rate.num_windows)
    ahead = span_ps / rate.window_ps
    spread = T_QUANTILES[rate.num_windows - 2] * rate.deviation * math.sqrt(ahead + ahead * ahead / num)
    return spread * rate.window_ps + rate.decline * ahead + END_PACKETS


def _squares_about(values: Sequence[float], mean: float) -> float:
    total = 0.0
    for value in values:
        total += (value - mean) * (value - mean)
    return total
