"""Processes of this machine as /proc shows them: state, processor time, children, session."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
GONE = ""  # state of a process that does not exist, or has ended and not been waited for


@dataclass(frozen=True, kw_only=True)
class ProcessReading:
    """A process at one moment; its state is a letter of proc(5), or GONE."""

    pid: int
    state: str = GONE
    cpu_s: float = 0.0
    session: int = -1
    started_ticks: int = -1  # since boot: with the number, it names a process


def read_process(pid: int) -> ProcessReading:
    """Return what /proc shows of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ProcessReading(pid=pid)
    if fields[0] in ("Z", "X", "x"):
        return ProcessReading(pid=pid)
    return ProcessReading(
        pid=pid,
        state=fields[0],
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        session=int(fields[3]),
        started_ticks=int(fields[19]),
    )


def num_context_switches(pid: int) -> int:
    """Return how often a process has been switched to or from, 0 where it is gone; it grows whenever it runs."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        return sum(int(line.split(":")[1]) for line in lines if "ctxt_switches" in line)
    return 0


def children(pid: int) -> list[int]:
    """Return the children of a process that its first thread has started."""
    with suppress(OSError, ValueError):
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def command_of(pid: int) -> list[str]:
    """Return the command line of a process, without words where it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def in_session(session: int) -> Iterator[int]:
    """Yield the processes of a session that have not ended."""
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            reading = read_process(int(path.name))
            if reading.session == session and reading.state != GONE:
                yield reading.pid
