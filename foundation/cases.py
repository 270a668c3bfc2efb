"""A conformance case: a published result, the band it must fall in, and the code that gets it.

Each package lists its own cases in its `conformance.py`; `fabrictune conformance` runs them all. Class A is exact
(closed form, published pseudo-code), B another simulator's figure, C real hardware.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict


@dataclass(frozen=True, kw_only=True)
class Case:
    """One published result and the code that reproduces it."""

    name: str  # begins with the package's name: "netsim.incast-closed-form"
    source: str  # paper and section, closed form, other simulator, hardware
    unit: str
    expected: float
    low: float  # the band, both ends included
    high: float
    run: Callable[[], float]
    trust: Literal["A", "B", "C"] = "A"

    def __post_init__(self) -> None:
        assert self.low <= self.high, f"{self.name}: an empty band"


class Band(TypedDict):
    """Three of a Case's keyword arguments."""

    expected: float
    low: float
    high: float


def around(expected: float, fraction: float) -> Band:
    """Return `expected` with a band of plus or minus a fraction of it, as keyword arguments of Case."""
    margin = abs(expected) * fraction
    return {"expected": expected, "low": expected - margin, "high": expected + margin}


def exactly(expected: float) -> Band:
    """Return `expected` as a band of one value, as keyword arguments of Case."""
    return {"expected": expected, "low": expected, "high": expected}
