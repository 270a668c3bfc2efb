"""Places of a law's functions where a run can fail, and what each kind of check finds there."""

from dataclasses import dataclass
from enum import StrEnum

MAX_LOOP_STEPS = 100_000  # of all loops in one call of a handler; the longest of the project's laws takes 64


class Check(StrEnum):
    """A check's name in rewritten functions."""

    STEP = "check.step"  # (steps, place): one step of a loop
    DIVISOR = "check.divisor"  # (value, place): value
    INDEX = "check.index"  # (array, index, place): index
    FITS = "check.fits"  # (value, bits, place): value, which becomes a whole number
    ITEM = "check.item"  # (array, value, place): value, which becomes an item
    RAISE = "check.raise"  # (place): an exception follows


@dataclass(frozen=True, kw_only=True)
class Place:
    """One check: where it is, and what it found if it failed."""

    check: Check
    path: str
    line: int
    function: str

    @property
    def found(self) -> str:
        """What a failure of the check means, as part of a message."""
        return {
            Check.STEP: f"looped more than {MAX_LOOP_STEPS:,} times in one call",
            Check.DIVISOR: "divided by zero",
            Check.INDEX: "used an index outside its array",
            Check.FITS: "made a whole number of one that is too large, infinite or no number",
            Check.ITEM: "made a whole number of one that is too large, infinite or no number",
            Check.RAISE: "raised an exception",
        }[self.check]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}"
