"""Share of this machine's processors that others had while something was measured.

Source: proc(5), `/proc/stat`: time of all processors since the start, by what they did. Left out: other systems than
Linux, which say nothing here.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabrictune.foundation.arrays import FloatArray

_STAT = Path("/proc/stat")
_IDLE = (3, 4)  # idle, iowait
_STOLEN = 7  # the last of those that add up: guests' time is in that of users


@dataclass(frozen=True, kw_only=True)
class MachineShare:
    """Who had the processors, as fractions of the time of all of them."""

    num_processors: int
    others_fraction: float  # whatever is not our own, the system's threads included
    steal_fraction: float  # the hypervisor, for other machines
    load_average: float  # of the last minute, at the end


def processor_times() -> FloatArray | None:
    """Return the time of day, and seconds of processors busy and stolen so far; None where the system does not say."""
    try:
        counts = [int(text) for text in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:]]
        stolen, ticks = counts[_STOLEN], os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    busy = sum(count for place, count in enumerate(counts[:_STOLEN]) if place not in _IDLE)
    return np.array([time.time(), busy / ticks, stolen / ticks])


def machine_share(begin: FloatArray, end: FloatArray, own_s: float) -> MachineShare:
    """Return who had the processors between two of `processor_times`, of which `own_s` is our own."""
    elapsed_s, busy_s, stolen_s = (end - begin).tolist()
    num_processors = os.cpu_count() or 1
    all_s = max(elapsed_s, 1e-9) * num_processors
    return MachineShare(
        num_processors=num_processors,
        others_fraction=min(1.0, max(0.0, (busy_s - own_s) / all_s)),
        steal_fraction=min(1.0, max(0.0, stolen_s / all_s)),
        load_average=os.getloadavg()[0],
    )
