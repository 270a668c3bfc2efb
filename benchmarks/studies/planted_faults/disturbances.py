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

POLL_S, LOOK_S = 0.0005, 0.05  # for a request, and for a process
LIMIT_S = 240.0
LOADER = b"trainer_probe.data.service"


class Disturbance(threading.Thread):
    """Stops and starts of a process, until the end."""

    def __init__(self, find_pid: Callable[[], int | None]) -> None:
        super().__init__(daemon=True)
        self._find_pid = find_pid
        self._is_over = threading.Event()

    def end(self) -> None:
        """End it; the process runs."""
        self._is_over.set()
        self.join()

    def run(self) -> None:
        while (pid := self._find_pid()) is None:
            if self._is_over.wait(LOOK_S):
                return
        with suppress(ProcessLookupError):  # it has ended
            while not self._is_over.is_set():
                self._stop_once(pid)

    def _stop_once(self, pid: int) -> None:
        raise NotImplementedError


class Turns(Disturbance):
    """Stops of a process for the same part of each period."""

    def __init__(self, find_pid: Callable[[], int | None], *, stopped_s: float, running_s: float) -> None:
        super().__init__(find_pid)
        self._stopped_s, self._running_s = stopped_s, running_s

    def _stop_once(self, pid: int) -> None:
        self._is_over.wait(self._running_s)
        os.kill(pid, signal.SIGSTOP)
        self._is_over.wait(self._stopped_s)
        os.kill(pid, signal.SIGCONT)


class Starving(Disturbance):
    """Stops of a rank's loader, each until the rank has stood still for a time: it has used what was read ahead."""

    def __init__(self, find_pid: Callable[[], int | None], page: Path, *, still_s: float) -> None:
        super().__init__(find_pid)
        self._page, self._still_s = page, still_s

    def _stop_once(self, pid: int) -> None:
        while self._step() < 1 and not self._is_over.wait(LOOK_S):
            pass
        os.kill(pid, signal.SIGSTOP)
        step, since_s = self._step(), time.monotonic()
        while time.monotonic() < since_s + self._still_s and not self._is_over.wait(LOOK_S):
            if (now := self._step()) != step:
                step, since_s = now, time.monotonic()
        os.kill(pid, signal.SIGCONT)
        self._is_over.wait(LOOK_S)

    def _step(self) -> int:
        now = page_of(self._page)
        return -1 if now is None else now.step


def loader_of(pid: int) -> int | None:
    """Return the process of a rank's own loader, if it is there."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = status.read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid and LOADER in status.with_name("cmdline").read_bytes():
                return int(status.parent.name)
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
