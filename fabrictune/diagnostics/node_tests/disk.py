"""The disk below the job's folder: what is written and synced is read back, and how fast that was.

The file is dropped from the page cache before it is read. Left out: the speed of reading, which is often a cache's.
"""

import hashlib
import os
import time
from pathlib import Path

from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.units import format_bytes

_BYTES = 2**24
_NUM_ROUNDS = 3


def measure_disk(folder: Path) -> NodeResult:
    """Write, sync, and read back."""
    content, times_s, faults = os.urandom(_BYTES), [], []
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < 4 * _BYTES:
        return NodeResult(test="disk", faults=(f"{format_bytes(room.f_bavail * room.f_frsize)} left at {folder}",))
    probe = folder / f".diagnose-{os.getpid()}"
    try:
        for _ in range(_NUM_ROUNDS):
            began_s = time.perf_counter()
            with probe.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                times_s.append(time.perf_counter() - began_s)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if hashlib.sha256(probe.read_bytes()).digest() != hashlib.sha256(content).digest():
                faults.append(f"other bytes read at {folder} than written")
    finally:
        probe.unlink(missing_ok=True)
    figures = {"write_bytes_per_s": _BYTES / min(times_s)}
    return NodeResult(test="disk", figures=figures, faults=tuple(dict.fromkeys(faults)))
