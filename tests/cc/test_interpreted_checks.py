"""The limits of what interpreted handlers may do, met exactly."""

import numpy as np
import pytest

from fabrictune.cc.interpreted_checks import INTERPRETED_CHECKS, CheckFailed, StepCounter
from fabrictune.cc.places import MAX_LOOP_STEPS, Check


def failed_place(check: Check, *arguments: object) -> int | None:
    """Return the place that a check at place 7 names, None where it lets its arguments by."""
    try:
        INTERPRETED_CHECKS[check](*arguments, 7)
    except CheckFailed as failed:
        return failed.place
    return None


def passes(check: Check, *arguments: object) -> bool:
    """Return whether a check lets its arguments by; where it does not it names its own place."""
    place = failed_place(check, *arguments)
    assert place in (None, 7)
    return place is None


def test_a_call_may_take_a_hundred_thousand_steps() -> None:
    """And not one more."""
    steps = StepCounter()
    assert MAX_LOOP_STEPS == 100_000
    assert all(passes(Check.STEP, steps) for _ in range(100_000))
    assert not passes(Check.STEP, steps)


@pytest.mark.parametrize(("value", "is_right"), [(1, True), (-1, True), (0.5, True), (0, False), (0.0, False)])
def test_a_divisor_is_not_zero(value: float, is_right: bool) -> None:
    """What is no number is left to the division itself."""
    assert passes(Check.DIVISOR, value) == is_right
    assert passes(Check.DIVISOR, np.zeros(3))


@pytest.mark.parametrize(("index", "is_right"), [(-4, False), (-3, True), (0, True), (2, True), (3, False)])
def test_an_index_is_inside_its_array(index: int, is_right: bool) -> None:
    """Three entries, counted from either end; other sequences look for themselves."""
    assert passes(Check.INDEX, np.zeros(3), index) == is_right
    assert passes(Check.INDEX, np.zeros(3), np.int64(index)) == is_right
    assert passes(Check.INDEX, (1, 2, 3), index)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_whole_number_has_room_in_its_field(bits: int) -> None:
    """-2**31 to 2**31 - 1 in 32 bits; what is no number is none."""
    limit = 2 ** (bits - 1)
    assert [passes(Check.FITS, value, bits) for value in (-limit - 1, -limit, limit - 1, limit)] == [
        *(False, True, True, False)
    ]
    assert not passes(Check.FITS, float("nan"), bits)
    assert not passes(Check.FITS, float("inf"), bits)
    array = np.zeros(1, f"i{bits // 8}")
    assert [passes(Check.ITEM, array, value) for value in (-limit - 1, -limit, limit - 1, limit)] == [
        *(False, True, True, False)
    ]
    assert passes(Check.ITEM, np.zeros(1), 1e300)
