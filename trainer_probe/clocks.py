"""Clocks of a rank's work, and moments on the clocks of several machines.

A reading may be taken before the moment that it names has come: work on a GPU is queued, and a reading of its stream
(`stream_clock.py`) is the moment when all that is queued so far is done. On a CPU work is done when its call returns.

A process's clock counts from the start of its machine, so that ranks of one machine share it. Between machines a moment
is converted by the time of day, with the accuracy of their synchronization, but never beyond what meetings of all ranks
leave possible: who leaves one does so after everybody has come.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar

Reading = TypeVar("Reading")

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # Linux: a new one at each start of a machine
_HALF = 2**63


class Clock(Protocol[Reading]):
    """The clock of a rank's work."""

    def read(self) -> Reading:
        """Return a reading of the moment at which the work so far is done; does not wait for it."""
        ...

    def ns(self, reading: Reading) -> int:
        """Return a reading by the machine's clock, once its moment has come."""
        ...


class HostClock:
    """A clock of work that is done when its call returns: readings are ns of the machine's clock."""

    def __init__(self, read_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._read_ns = read_ns

    def read(self) -> int:
        """Return this moment."""
        return self._read_ns()

    def ns(self, reading: int) -> int:
        """Return the reading."""
        return reading


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A moment by the clock and the time of day of one machine, which two numbers identify."""

    clock_ns: int
    time_of_day_ns: int
    boot_high: int
    boot_low: int

    @classmethod
    def now(cls, clock_ns: int) -> Self:
        """Return this moment, which the machine's clock has just shown as `clock_ns`."""
        high, low = divmod(uuid.UUID(_BOOT_ID.read_text().strip()).int >> 2, _HALF)  # twice 63 bits of 128
        return cls(clock_ns=clock_ns, time_of_day_ns=time.time_ns(), boot_high=high, boot_low=low)

    def numbers(self) -> tuple[int, int, int, int]:
        """Return the fields, in order, as integers of 64 bits."""
        return astuple(self)

    @classmethod
    def of(cls, numbers: tuple[int, int, int, int]) -> Self:
        """Return the moment with these fields."""
        clock_ns, time_of_day_ns, boot_high, boot_low = numbers
        return cls(clock_ns=clock_ns, time_of_day_ns=time_of_day_ns, boot_high=boot_high, boot_low=boot_low)

    def on_clock_of(self, other: "Moment") -> int:
        """Return this moment by the clock of another moment's machine, in ns."""
        if (self.boot_high, self.boot_low) == (other.boot_high, other.boot_low):
            return self.clock_ns
        return other.clock_ns + self.time_of_day_ns - other.time_of_day_ns


Meeting = tuple[int, int]  # a rank's clock when it comes to a meeting of all ranks, and when it leaves


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """How far a machine's clock is ahead of rank 0's, and a bound on the error of that."""

    offset_ns: int
    error_ns: int


def clock_offset(
    own: Moment, first: Moment, own_meetings: Sequence[Meeting], meetings: Sequence[Meeting]
) -> ClockOffset:
    """Return the offset of a rank's clock from rank 0's moment `first`, and from meetings as both saw them."""
    offset_ns = own.clock_ns - own.on_clock_of(first)
    if (own.boot_high, own.boot_low) == (first.boot_high, first.boot_low):
        return ClockOffset(offset_ns=offset_ns, error_ns=0)
    pairs = list(zip(own_meetings, meetings, strict=True))
    least_ns = max(came - first_left for (came, _), (_, first_left) in pairs)
    most_ns = min(left - first_came for (_, left), (first_came, _) in pairs)
    offset_ns = min(max(offset_ns, least_ns), most_ns)
    return ClockOffset(offset_ns=offset_ns, error_ns=max(offset_ns - least_ns, most_ns - offset_ns))
