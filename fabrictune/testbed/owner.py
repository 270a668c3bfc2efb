"""Who made a testbed, written into the testbed itself: the alias of its hub's bridge, which ends with it.

So a testbed whose process was killed, half built or in use, is told from one that is to stay until it is taken down,
and no file outside its namespaces has to be right.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.network_namespaces import run_tool

BRIDGE = "mgmt"
STAYS, RUNS, BUILDS = "stays", "runs", "builds"
MAX_FOLDER = 200  # characters, of an alias' 255
_ALIAS = re.compile(rf"({STAYS}|{RUNS}|{BUILDS}) (\d+):(\d+) (.+)")


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The process that builds or runs a testbed, or has built one that stays, and the testbed's folder."""

    state: str
    pid: int
    started_ticks: int  # since boot: with the number, it names a process
    folder: Path

    @property
    def is_abandoned(self) -> bool:
        """Whether the testbed should have been taken down by a process that is gone."""
        return self.state != STAYS and _started_ticks(self.pid) != self.started_ticks


def claim(hub: str, state: str, folder: Path) -> None:
    """Write this process and a state into a hub."""
    pid = os.getpid()
    alias = f"{state} {pid}:{_started_ticks(pid)} {folder}"
    run_tool(["ip", "-n", hub, "link", "set", "dev", BRIDGE, "alias", alias])


def read_owner(hub: str) -> Owner | None:
    """Return what a hub says of its owner; None where it was not built so far."""
    match = _ALIAS.search(run_tool(["ip", "-n", hub, "link", "show"]))
    if match is None:
        return None
    state, pid, ticks, folder = match.groups()
    return Owner(state=state, pid=int(pid), started_ticks=int(ticks), folder=Path(folder))


def _started_ticks(pid: int) -> int:
    try:
        fields = Path("/proc", str(pid), "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return -1
    return int(fields[19])
