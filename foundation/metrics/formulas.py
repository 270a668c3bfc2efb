"""Formulas of metrics, on plain numbers and arrays.

A percentile here is the nearest rank: the smallest value that at least that share of the values does not exceed. It is
a value that really occurred, it needs no rule for what lies between two of them (which says nothing of a tail, and is
undefined next to an infinite value), and it can be read off the cumulative distribution. So the p99 of 100 values is
the 99th, and the p50 of an even number of values is the lower of the two in the middle.

Two things are not percentiles in this sense and use other estimators. The median of repeated readings of one quantity
(a benchmark's runs, a device's trials) estimates that quantity, and is the sample median: `statistics.median`. The ends
of a confidence interval are quantiles of an estimator's distribution. Both say so in their docstrings.

Source: Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996), definition 1;
Jain, Chiu and Hawe, DEC-TR-301 (1984); nccl-tests, doc/PERFORMANCE.md.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S

Array = IntArray | FloatArray

ROUNDING = 1e-9  # 0.99 * 700 is 693 and no more


def percentile(values_N: ArrayLike, fraction: float) -> float:
    """Return the smallest of N values that at least a fraction of them does not exceed; nan of none."""
    return float(percentiles(values_N, (fraction,))[0])


def percentiles(values_N: ArrayLike, fractions_F: Sequence[float]) -> FloatArray:
    """Return percentiles along the last axis: of shape (..., N), F fractions give (F, ...); nan where N is 0."""
    values_N = np.asarray(values_N)
    num_values = values_N.shape[-1]
    if num_values == 0:
        return np.full((len(fractions_F), *values_N.shape[:-1]), np.nan)
    places_F = [max(int(np.ceil(fraction * num_values - ROUNDING)), 1) - 1 for fraction in fractions_F]
    placed_N = np.partition(values_N, places_F, axis=-1)
    return np.stack([placed_N[..., place] for place in places_F]).astype(np.float64)


def jain_fairness_index(share_N: Array) -> float:
    """Return (sum x)^2 / (n sum x^2): 1 if all N shares are equal, 1/N if one has all; nan if all are zero."""
    if not share_N.any():
        return np.nan
    share_N = share_N / share_N.max()  # so that no square of a whole number overflows
    return float(share_N.sum() ** 2 / (len(share_N) * (share_N**2).sum()))


def max_to_mean_ratio(load_L: Array) -> float:
    """Return the load of the busiest link over the mean of all L (MMR): 1 if they share evenly."""
    return float(load_L.max() / load_L.mean())


def throughput_bps(num_bytes: float, time_ps: float) -> float:
    """Return payload over time."""
    return num_bytes * BITS_PER_BYTE / (time_ps / PS_PER_S)


def bus_bandwidth_bps(num_bytes: float, bus_factor: float, time_ps: float) -> float:
    """Return nccl-tests' busbw: size times bus factor over time, comparable with a link's rate at any rank count."""
    return throughput_bps(num_bytes * bus_factor, time_ps)
