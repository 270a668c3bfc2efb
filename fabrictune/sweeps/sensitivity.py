"""Sensitivity of an objective to each key: variance share and rank correlation.

*Variance share*: the part of an objective's variance over the points that the means by a key's values explain, the
first-order index of a variance decomposition. It is corrected for what chance alone would explain, so a key without
effect has 0 on average, and is not negative. The values of a range are put into groups of equal size first, as many as
the square root of the number of points, at most 10.
*Rank correlation*: Spearman's, from -1 (more of the key, less of the objective) to 1, with ties at their mean rank;
for keys whose values are numbers.

Both take points that were drawn independently of the results: a grid, or random draws. What a key does only together
with others shows in neither; the shares then sum to less than 1.

Source: Saltelli et al., "Global Sensitivity Analysis", 2008 (first-order indices); Kelley, 1935 (the correction,
epsilon squared); Spearman, 1904.

Shapes: P points.
"""

import math

import numpy as np

from fabrictune.foundation.arrays import FloatArray

MAX_GROUPS = 10


def variance_share(position_P: FloatArray, value_P: FloatArray) -> float:
    """Return the share of the values' variance that the positions' groups explain, 0 to 1; nan if it is unknown.

    `position_P` are numbers that are equal for points of one group; `grouped` makes them of a range.
    """
    _, group_P = np.unique(position_P, return_inverse=True)
    size_G = np.bincount(group_P)
    num_points, num_groups = len(value_P), len(size_G)
    total = float(((value_P - value_P.mean()) ** 2).sum()) if num_points else 0.0
    if num_groups < 2 or num_points <= num_groups or total == 0:
        return math.nan
    mean_G = np.bincount(group_P, value_P) / size_G
    within = float(((value_P - mean_G[group_P]) ** 2).sum())
    return max(0.0, 1 - within / (num_points - num_groups) / (total / (num_points - 1)))


def grouped(position_P: FloatArray) -> FloatArray:
    """Return positions as groups of about equal size, in their order; those of a grid are groups already."""
    num_groups = min(MAX_GROUPS, math.isqrt(len(position_P)))
    if len(np.unique(position_P)) <= num_groups:
        return position_P
    return np.floor((_ranks(position_P) - 0.5) * num_groups / len(position_P))


def rank_correlation(position_P: FloatArray, value_P: FloatArray) -> float:
    """Return Spearman's coefficient; nan where either has one value only."""
    rank_P, other_P = _ranks(position_P), _ranks(value_P)
    spread = float(rank_P.std() * other_P.std()) if len(rank_P) else 0.0
    if spread == 0:
        return math.nan
    return float(((rank_P - rank_P.mean()) * (other_P - other_P.mean())).mean() / spread)


def _ranks(values_P: FloatArray) -> FloatArray:
    """Return ranks from 1; equal values share the mean of theirs."""
    _, group_P, size_G = np.unique(values_P, return_inverse=True, return_counts=True)
    last_G = np.cumsum(size_G)
    return np.asarray((last_G - (size_G - 1) / 2)[group_P])
