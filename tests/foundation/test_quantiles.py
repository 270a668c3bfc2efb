"""Quantiles of Student's t are those of its tables."""

import pytest

from fabrictune.foundation.quantiles import student_t_90, student_t_95


@pytest.mark.parametrize(
    ("freedom", "ninety", "ninety_five"),
    [(1, 6.3138, 12.7062), (2, 2.9200, 4.3027), (3, 2.3534, 3.1824), (5, 2.0150, 2.5706), (30, 1.6973, 2.0423)],
)
def test_quantiles_are_those_of_the_tables(freedom: int, ninety: float, ninety_five: float) -> None:
    """Abramowitz and Stegun, table 26.10."""
    assert student_t_90(freedom) == pytest.approx(ninety, rel=1.3e-3)
    assert student_t_95(freedom) == pytest.approx(ninety_five, rel=1.3e-3)
