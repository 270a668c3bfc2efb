"""Robust statistics, against numbers worked out by hand."""

import numpy as np
import pytest

from fabrictune.foundation.outliers import find_outliers
from fabrictune.foundation.robust import deviation, median_of_rows, over_peers


def test_a_deviation_is_1_4826_medians_of_distances_from_the_median() -> None:
    """Of 1, 2, 3, 4 and 100 the median is 3, distances are 2, 1, 0, 1 and 97; what is missing is left out."""
    assert deviation(np.array([1.0, 2, 3, 4, 100, np.nan])) == pytest.approx(1.4826)
    assert deviation(np.array([])) == 0


def test_a_row_without_values_has_no_median() -> None:
    found = median_of_rows(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]))
    assert found[0] == 2
    assert np.isnan(found[1])


def test_a_value_is_set_against_three_peers_or_more() -> None:
    """Three peers of median 2, and two that are too few."""
    found = over_peers(np.array([[1.0], [2], [4], [5], [6]]), np.array([0, 0, 0, 1, 1]))
    assert found[:3, 0].tolist() == [0.5, 1, 2]
    assert np.isnan(found[3:]).all()


def test_an_outlier_is_beyond_both_the_share_and_the_deviation() -> None:
    """Median 3, one deviation 1.4826: 100 is 65.4 of them above."""
    values = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 100.0}
    (found,) = find_outliers(values, deviation=0.1, spread=3, is_less_better=True)
    assert (found.name, found.usual) == ("e", 3)
    assert found.deviations == pytest.approx(97 / 1.4826)
