"""Checks of interpreted handlers: what the compiled ones do, in Python."""

from typing import Any

import numpy as np

from fabrictune.cc.places import MAX_LOOP_STEPS, Check


class CheckFailed(BaseException):
    """A check of a handler failed at a place; a handler's `except Exception` lets it by."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class StepCounter:
    """Loop steps that one call of a handler has left."""

    def __init__(self) -> None:
        self.left = MAX_LOOP_STEPS


def _step(steps: StepCounter, place: int) -> None:
    if steps.left == 0:
        raise CheckFailed(place)
    steps.left -= 1


def _divisor(value: Any, place: int) -> Any:
    if np.isscalar(value) and value == 0:
        raise CheckFailed(place)
    return value


def _index(array: Any, index: Any, place: int) -> Any:
    if isinstance(array, np.ndarray) and isinstance(index, int | np.integer) and not -len(array) <= index < len(array):
        raise CheckFailed(place)
    return index


def _fits(value: Any, bits: int, place: int) -> Any:
    limit = 2 ** (bits - 1)
    if isinstance(value, float | int | np.number) and not -limit <= value < limit:
        raise CheckFailed(place)
    return value


def _item(array: Any, value: Any, place: int) -> Any:
    dtype = getattr(array, "dtype", None)
    return _fits(value, 8 * dtype.itemsize, place) if dtype is not None and dtype.kind == "i" else value


def _raise(place: int) -> None:
    """Do nothing: the exception that follows leads to its line by itself."""


INTERPRETED_CHECKS: dict[str, Any] = {
    Check.STEP: _step,
    Check.DIVISOR: _divisor,
    Check.INDEX: _index,
    Check.FITS: _fits,
    Check.ITEM: _item,
    Check.RAISE: _raise,
}
