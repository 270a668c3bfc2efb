"""Whole powers."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fabrictune.cc.arithmetic import integer_power


@given(base=st.integers(-8, 8), exponent=st.integers(0, 17))
def test_whole_bases_are_exact(base, exponent):
    """8**17 = 2**51 fits a float's 53 bits, so every product on the way is exact."""
    assert integer_power(float(base), exponent) == base**exponent


def test_alpha_decay_is_right_to_fifteen_digits():
    """(255/256)**177 by squaring rounds at most 14 times, each by 1.1e-16."""
    exact = float(Fraction(255, 256) ** 177)
    assert abs(integer_power(255 / 256, 177) / exact - 1) < 2e-15


def test_the_zeroth_power_is_one():
    """No interval has passed: nothing decays."""
    assert integer_power(0.3, 0) == 1.0
