"""Faults that a parent plants in ranks of a real job from outside, by signals.

A rank or its loader is stopped by turns, or a rank for good at a request of an axis, until `diagnose` has answered.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.trainer_probe.operation.pages import PageReading, read_page

POLL_S = 0.0005
LIMIT_S = 240.0
LOADER = b"trainer_probe.data.service"


class Turns(threading.Thread):
    """Stops and starts of a process by turns, until the end."""

    def __init__(self, find_pid: Callable[[], int | None], *, stopped_s: float, running_s: float) -> None:
        super().__init__(daemon=True)
        self._find_pid, self._stopped_s, self._running_s = find_pid, stopped_s, running_s
        self._is_over = threading.Event()

    def end(self) -> None:
        """End the turns; the process runs."""
        self._is_over.set()
        self.join()

    def run(self) -> None:
        while (pid := self._find_pid()) is None:
            if self._is_over.wait(POLL_S):
                return
        with suppress(ProcessLookupError):  # it has ended
            while not self._is_over.wait(self._running_s):
                os.kill(pid, signal.SIGSTOP)
                self._is_over.wait(self._stopped_s)
                os.kill(pid, signal.SIGCONT)


def loader_of(pid: int) -> int | None:
    """Return the process of a rank's own loader, if it is there."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                if LOADER in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
    return None


def stop_at_request(page: Path, groups: "frozenset[int] | None", step: int) -> int:
    """Stop a rank when it makes a request of some groups, of messages for None, from a step on; returns its process."""
    limit_s, before = time.monotonic() + LIMIT_S, -1
    while time.monotonic() < limit_s:
        now = page_of(page)
        count = -1 if now is None or now.step < step else _count(now, groups)
        if now is not None and count > before >= 0:
            os.kill(now.pid, signal.SIGSTOP)
            return now.pid
        before = count
        time.sleep(POLL_S)
    raise TimeoutError(f"{page}: no request of the axis within {LIMIT_S:g} s")


def groups_of(layout: ParallelLayout, axis: Axis) -> "frozenset[int] | None":
    """Return the numbers of an axis's groups, None for messages, which have numbers of their own."""
    if axis == "pp":
        return None
    first = 0
    for other in layout.axes:
        number = len(layout.groups(other))
        if other == axis:
            return frozenset(range(first, first + number))
        first += number
    raise KeyError(axis)


def page_of(path: Path) -> PageReading | None:
    """Return a rank's page, None while it is not there or being written."""
    try:
        return read_page(path)
    except (FabrictuneError, OSError):
        return None


def _count(page: PageReading, groups: "frozenset[int] | None") -> int:
    return sum(number for group, number in page.issued.items() if (group < 0 if groups is None else group in groups))
