"""Jain's index of shares whose index can be worked out by hand."""

import numpy as np
import pytest

from fabrictune.foundation.fairness import jain_fairness_index


def test_fairness_is_one_when_equal_and_one_nth_when_one_has_all() -> None:
    """Jain's index of n equal rates is 1; of (1, 0, 0, 0) it is 1 / 4; of 1, 2, 3 it is 36 / (3 * 14) = 6/7."""
    assert jain_fairness_index(np.full(7, 3.0)) == pytest.approx(1)
    assert jain_fairness_index(np.array([1.0, 0, 0, 0])) == pytest.approx(0.25)
    assert jain_fairness_index(np.array([1.0, 2, 3])) == pytest.approx(6 / 7)


def test_whole_numbers_do_not_overflow() -> None:
    """The square of 4e18 bytes is beyond 64 bits."""
    assert jain_fairness_index(np.array([4 * 10**18, 4 * 10**18])) == pytest.approx(1)
