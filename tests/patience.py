"""How long tests wait for what must come: longer on a machine that is slower, or busier, than a quiet one.

A test waits for an event. A limit is there for what never comes, so it may be generous, and is never what a test waits
for. A guard ends each test that hangs, and prints the stacks of all threads.
"""

import faulthandler
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from fabrictune.foundation.time_limits import MAX_SCALE

QUIET_S = 0.018  # of `_compute` on the quiet machine that the limits were chosen on
LAST_RESORT = 3  # times the limit: ends the whole run where a test is stuck outside Python


def slowness() -> float:
    """Return how many times slower than a quiet one this machine is now: at least 1, at most MAX_SCALE.

    The greater of a fixed computation's time over its time on a quiet machine, and of processes per processor, which so
    short a computation need not meet.
    """
    started_s = time.perf_counter()
    _compute()
    return min(max((time.perf_counter() - started_s) / QUIET_S, crowding()), MAX_SCALE)


def crowding() -> float:
    """Return how many processes share a processor, of the last minute's mean: at least 1, at most MAX_SCALE."""
    return min(max(os.getloadavg()[0] / len(os.sched_getaffinity(0)), 1.0), MAX_SCALE)


def patience(seconds: float) -> float:
    """Return how long to wait now for what takes less than `seconds` on a quiet machine."""
    return seconds * slowness()


@contextmanager
def hang_guard(limit_s: float, stacks_to: int) -> Iterator[None]:
    """Fail the test in the block when it takes longer than it may on this machine.

    The limit is stretched when it is reached, by how slow the machine is then. The stacks of all threads go to a file
    descriptor. Where no Python code runs any more, the whole run ends.
    """
    started_s = time.monotonic()

    def set_alarm(after_s: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, after_s)
        faulthandler.dump_traceback_later(after_s * LAST_RESORT, exit=True, file=stacks_to)

    def on_alarm(number: int, frame: FrameType | None) -> None:
        faulthandler.cancel_dump_traceback_later()  # Python code runs; to measure takes longest where machines are slow
        elapsed_s, allowed_s = time.monotonic() - started_s, patience(limit_s)
        if elapsed_s < allowed_s:
            set_alarm(max(allowed_s - elapsed_s, limit_s))
        else:
            set_alarm(limit_s)  # for the test that catches the failure
            faulthandler.dump_traceback(file=stacks_to, all_threads=True)
            pytest.fail(f"hangs: not over after {elapsed_s:.1f} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    set_alarm(limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def _compute() -> int:
    return sum(number * number for number in range(500_000))
