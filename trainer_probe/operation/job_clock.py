"""Seconds since a job's first event, over several drivers and, less exactly, several starts of the machine."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return what names this start of this machine, "" where it is not known."""
    with suppress(OSError):
        return _BOOT_ID.read_text().strip()
    return ""


@dataclass(frozen=True, kw_only=True)
class BootClock:
    """A job's clock on the monotonic clock of this start of the machine."""

    origin_s: float  # the job's first event, on that clock

    @classmethod
    def begin(cls) -> Self:
        """Return the clock of a job that starts now."""
        return cls(origin_s=time.monotonic())

    @classmethod
    def resume(cls, origin: Mapping[str, Any], last_elapsed_s: float, last_time_ns: int) -> Self:
        """Return the clock of a job with this origin; after another start of the machine the time of day bridges."""
        if origin["boot"] == boot_id() != "":
            return cls(origin_s=float(origin["clock_s"]))
        away_s = max(0.0, (time.time_ns() - last_time_ns) / 1e9)
        return cls(origin_s=time.monotonic() - last_elapsed_s - away_s)

    def origin(self) -> dict[str, Any]:
        """Return what `resume` takes, as JSON values."""
        return {"boot": boot_id(), "clock_s": self.origin_s}

    def elapsed_s(self, clock_s: float | None = None) -> float:
        """Return the time of a moment by the machine's monotonic clock, now without one."""
        return max(0.0, (time.monotonic() if clock_s is None else clock_s) - self.origin_s)
