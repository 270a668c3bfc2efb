"""Robust statistics: a median, and the deviation that a few outliers do not change.

Shapes: R ranks, S steps.
"""

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray

MAD_TO_SIGMA = 1.4826  # of a normal distribution
MEDIAN_TO_MEAN = 1.2533  # standard error of its median over that of its mean
MIN_PEERS = 3  # that have a value in a column
MIN_ERRORS = 4.0  # standard errors that an excess has to be beyond: 3 of 100,000 are by chance


def deviation(values: FloatArray) -> float:
    """Return the median absolute deviation of values that are there, as a standard deviation; 0 for none."""
    there = values[np.isfinite(values)]
    return float(MAD_TO_SIGMA * np.median(np.abs(there - np.median(there)))) if len(there) else 0.0


def median_of_rows(values: FloatArray) -> FloatArray:
    """Return the median of each row's values that are there, NaN where none are."""
    result = np.full(len(values), np.nan)
    has_any = np.isfinite(values).any(axis=1)
    result[has_any] = np.nanmedian(values[has_any], axis=1)
    return result


def medians_of_groups(values: FloatArray | IntArray, group: IntArray) -> FloatArray:
    """Return the median of the values of each group, in the order of the groups' numbers."""
    order = np.lexsort((values, group))
    _, first, size = np.unique(group[order], return_index=True, return_counts=True)
    values = values[order]
    return np.asarray((values[first + (size - 1) // 2] + values[first + size // 2]) / 2)


def median_error(values: FloatArray, number: int) -> float:
    """Return the standard error of the median of as many values that scatter as these do."""
    return float(MEDIAN_TO_MEAN * deviation(values) / max(1, number) ** 0.5)


def over_peers(values_RS: FloatArray, peers_R: IntArray) -> FloatArray:
    """Return each rank's value over the median of its peers' in the same column; NaN where fewer than 3 are there."""
    ratio_RS = np.full_like(values_RS, np.nan)
    for peers in np.unique(peers_R):
        own = values_RS[peers_R == peers]
        has_enough = np.isfinite(own).sum(axis=0) >= MIN_PEERS
        if has_enough.any():
            medians = np.nanmedian(own[:, has_enough], axis=0)
            part = np.full_like(own, np.nan)
            part[:, has_enough] = own[:, has_enough] / np.where(medians > 0, medians, np.nan)
            ratio_RS[peers_R == peers] = part
    return ratio_RS
