"""One moment on the clocks of several machines.

A process's clock counts from when its machine was started, so that ranks of one machine share it, and those of others
do not. Between machines a moment is passed on by the time of day, as good as that is kept.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Self

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # Linux: another for each start of a machine
_HALF = 2**63


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A moment by the clock and the time of day of one machine, which two numbers tell from all others."""

    clock_ns: int
    time_of_day_ns: int
    boot_high: int
    boot_low: int

    @classmethod
    def now(cls, clock_ns: Callable[[], int]) -> Self:
        """Return this moment."""
        high, low = divmod(uuid.UUID(_BOOT_ID.read_text().strip()).int >> 2, _HALF)  # twice 63 bits of 128
        return cls(clock_ns=clock_ns(), time_of_day_ns=time.time_ns(), boot_high=high, boot_low=low)

    def numbers(self) -> tuple[int, int, int, int]:
        """Return it as whole numbers of 64 bits, in the order of the fields."""
        return astuple(self)

    @classmethod
    def of(cls, numbers: tuple[int, int, int, int]) -> Self:
        """Return what `numbers` gave."""
        clock_ns, time_of_day_ns, boot_high, boot_low = numbers
        return cls(clock_ns=clock_ns, time_of_day_ns=time_of_day_ns, boot_high=boot_high, boot_low=boot_low)

    def on_clock_of(self, other: "Moment") -> int:
        """Return what the clock of another moment's machine showed at this one, in ns."""
        if (self.boot_high, self.boot_low) == (other.boot_high, other.boot_low):
            return self.clock_ns
        return other.clock_ns + self.time_of_day_ns - other.time_of_day_ns
