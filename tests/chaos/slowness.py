"""A slow but healthy process: it gets a part of the processor's time, in turns too short to look stopped.

By one of three means: a quota of its control group, stops and starts of a few milliseconds, and a low priority beside
processes that compute without end. All end with the block.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 50_000
STOPPED_S, RUNNING_S = 0.03, 0.03
NUM_NEIGHBOURS = 2


@contextmanager
def throttled(pid: int, mark: str) -> Iterator[None]:
    """Let a process have 30 % of one processor, by a control group."""
    group = CPU_GROUPS / f"chaos-{mark}"
    group.mkdir(exist_ok=True)
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(PERIOD_US * 3 // 10))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for line in (group / "cgroup.procs").read_text().split():
            _attempt(partial((CPU_GROUPS / "cgroup.procs").write_text, line))
        _attempt(group.rmdir)


@contextmanager
def stopped_by_turns(pid: int, mark: str) -> Iterator[None]:
    """Stop a process for half of the time, 30 ms at a time."""
    is_over = threading.Event()

    def take_turns() -> None:
        while not is_over.wait(RUNNING_S) and _signal(pid, signal.SIGSTOP):
            time.sleep(STOPPED_S)
            _signal(pid, signal.SIGCONT)

    thread = threading.Thread(target=take_turns, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        _signal(pid, signal.SIGCONT)


@contextmanager
def outdone(pid: int, mark: str) -> Iterator[None]:
    """Give a process the lowest priority, and neighbours that compute without end."""
    command = [sys.executable, "-c", "while True: pass"]
    neighbours = [subprocess.Popen(command, preexec_fn=lambda: os.nice(10)) for _ in range(NUM_NEIGHBOURS)]
    try:
        _attempt(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def lack_of_groups() -> str:
    """Return why a process cannot be throttled here, or nothing."""
    return "" if os.access(CPU_GROUPS / "cgroup.procs", os.W_OK) else "no control group of processors to write to"


MEANS: Mapping[str, Callable[[int, str], AbstractContextManager[None]]] = {
    "turns": stopped_by_turns,
    "neighbours": outdone,
    "quota": throttled,
}


def usable_means() -> tuple[str, ...]:
    """Return the means that can be used here."""
    return tuple(name for name in MEANS if name != "quota" or not lack_of_groups())


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _attempt(action: Callable[[], object]) -> None:
    try:
        action()
    except OSError:
        return
