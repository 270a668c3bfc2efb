"""Lanes of slices that overlap."""

import numpy as np

from fabrictune.observability.timeline.lanes import lanes


def spread(slices: list[tuple[int, int]], *, may_nest: bool) -> list[int]:
    """Return the lanes of slices of one key."""
    starts, ends = np.array(slices).T
    return list(lanes(np.zeros_like(starts), starts, ends, may_nest=may_nest))


def test_requests_that_overlap_have_a_lane_each() -> None:
    """Three at once need three lanes; the fourth starts when the first ends, and has its lane."""
    assert spread([(0, 10), (2, 30), (4, 20), (10, 12)], may_nest=False) == [0, 1, 2, 0]


def test_work_may_lie_in_work_but_not_across_its_end() -> None:
    """A pass in a step stays; a checkpoint that outlives the step has a lane of its own."""
    assert spread([(0, 100), (10, 20), (15, 20), (90, 130)], may_nest=True) == [0, 0, 0, 1]


def test_lanes_of_one_key_do_not_depend_on_another() -> None:
    """Ranks are apart."""
    starts = np.array([0, 0, 5, 5])
    assert lanes(np.array([0, 1, 0, 1]), starts, starts + 10, may_nest=False).tolist() == [0, 0, 1, 1]
