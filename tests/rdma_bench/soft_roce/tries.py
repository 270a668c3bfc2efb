"""Measurements repeated, since an emulated machine that its host keeps waiting is late."""

from collections.abc import Callable

from tests.patience import slowness

MOST_TRIES = 6  # on a quiet machine


def first_good(measure: Callable[[], float], is_good: Callable[[float], bool]) -> float:
    """Return the first good measurement, or the last of as many tries as a machine this slow may need."""
    num_left = round(MOST_TRIES * slowness())
    while not is_good(measured := measure()) and num_left > 1:
        num_left -= 1
    return measured
