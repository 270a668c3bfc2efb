"""How long threads of processes have waited for a processor, though they could have run.

Source: Linux, `Documentation/scheduler/sched-stats.rst`, the second column of `/proc/PID/task/TID/schedstat`. Left out:
other systems, and kernels without these statistics, which show no waiting.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

NS_PER_S = 10**9


def waited_s(pids: Iterable[int]) -> float:
    """Return how long all threads of processes have waited so far, added up; those that have ended count no more."""
    return sum(_waits_ns(pids)) / NS_PER_S


def _waits_ns(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError, IndexError, ValueError):
                yield int(file.read_text(encoding="ascii").split()[1])
