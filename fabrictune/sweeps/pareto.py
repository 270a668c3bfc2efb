"""Pareto front of a sweep, and points that are surely dominated despite few seeds.

A point dominates another if it is no worse in any objective and better in one. The front is that of the means. A point
off it is *surely* dominated only if another's 95 % interval lies wholly beyond its own in every objective; the others
might change places with the front, given more seeds.

Shapes: P points, O objectives; costs, of which less is better.
"""

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray


def is_on_front(cost_PO: FloatArray) -> BoolArray:
    """Return which points no other dominates, shape (P,)."""
    is_free_P = np.ones(len(cost_PO), bool)
    for point, cost_O in enumerate(cost_PO):
        is_free_P[point] = not ((cost_PO <= cost_O).all(axis=1) & (cost_PO < cost_O).any(axis=1)).any()
    return is_free_P


def is_surely_dominated(low_PO: FloatArray, high_PO: FloatArray) -> BoolArray:
    """Return which points another beats in every objective by more than both intervals, shape (P,)."""
    return np.array([(high_PO < low_O).all(axis=1).any() for low_O in low_PO], bool)
