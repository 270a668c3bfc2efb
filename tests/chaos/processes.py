"""Processes of one run: found by a mark in their environment, told apart by what they execute.

Every process that a run starts inherits the mark, also one that has lost its parent. Nothing without the mark is ever
signalled.
"""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.patience import patience

MARK = "FABRICTUNE_TEST_OF_CHAOS"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A live process of a run."""

    pid: int
    parent: int
    state: str  # letter of /proc/PID/stat
    name: str  # of the process, as ps shows it
    started_ticks: int  # with the pid, names one process for ever
    words: tuple[str, ...]  # of its command line

    def is_command(self, *words: str) -> bool:
        """Return whether the words follow one another in the command line."""
        count = len(words)
        return any(self.words[first : first + count] == words for first in range(len(self.words)))


def marked(mark: str) -> tuple[Found, ...]:
    """Return the live processes of a run, by pid; those that have ended and wait for their parent are left out."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            fields = rest.split()
            words = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        except (OSError, IndexError):
            continue
        if fields[0] not in "ZX" and int(folder.name) != os.getpid():
            found.append(
                Found(
                    pid=int(folder.name),
                    parent=int(fields[1]),
                    state=fields[0],
                    name=head.partition("(")[2],
                    started_ticks=int(fields[19]),
                    words=tuple(words),
                )
            )
    return tuple(sorted(found, key=lambda process: process.pid))


def is_alive(process: Found) -> bool:
    """Return whether this very process still runs."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and int(fields[19]) == process.started_ticks


def send(mark: str, pid: int, number: signal.Signals) -> bool:
    """Send a signal to a process of a run; returns whether it was one and still there."""
    if all(process.pid != pid for process in marked(mark)):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_for_none(mark: str, limit_s: float) -> tuple[Found, ...]:
    """Wait until no process of a run is left; returns those that stay beyond the limit."""
    deadline = time.monotonic() + patience(limit_s)
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def end_all(mark: str) -> None:
    """Kill every process of a run, also those that start while this goes on."""
    deadline = time.monotonic() + patience(10)
    while (found := marked(mark)) and time.monotonic() < deadline:
        _kill(process.pid for process in found)
        time.sleep(0.05)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
