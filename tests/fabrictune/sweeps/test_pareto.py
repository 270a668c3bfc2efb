"""Pareto fronts, checked by hand."""

import numpy as np

from fabrictune.sweeps.pareto import is_on_front, is_surely_dominated


def test_the_front_is_what_nothing_is_better_than() -> None:
    """(3, 3) loses to (2, 2); equal points keep one another."""
    cost_PO = np.array([[1, 4], [2, 2], [3, 3], [4, 1], [4, 1], [1, 5]], float)
    assert is_on_front(cost_PO).tolist() == [True, True, False, True, True, False]


def test_of_one_objective_only_the_best_are_on_it() -> None:
    """Both that share the least."""
    assert is_on_front(np.array([[2.0], [1.0], [1.0]])).tolist() == [False, True, True]


def test_only_an_interval_wholly_beyond_another_is_sure() -> None:
    """The second is beyond the first in both objectives, the third overlaps it in one."""
    low_PO = np.array([[1, 1], [3, 3], [1.5, 3]])
    high_PO = np.array([[2, 2], [4, 4], [4, 4]])
    assert is_surely_dominated(low_PO, high_PO).tolist() == [False, True, False]


def test_intervals_that_touch_are_not_sure() -> None:
    """Where one ends the other begins: both may be the same number."""
    low_PO, high_PO = np.array([[1.0], [2.0]]), np.array([[2.0], [3.0]])
    assert is_surely_dominated(low_PO, high_PO).tolist() == [False, False]
