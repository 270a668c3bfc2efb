"""The processes of one generation on a node: ranks, the store, and the loader, and what they are seen to do."""

import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.trainer_probe.operation.observations import RankStatus, ServiceStatus
from fabrictune.trainer_probe.operation.pages import PageReading, read_page
from fabrictune.trainer_probe.operation.process_table import (
    GONE,
    children,
    command_of,
    num_context_switches,
    read_process,
)
from fabrictune.trainer_probe.operation.rank_output import RankOutput

STOPPED = ("T", "t")  # states that a process may leave and come back to between two looks
LOADER = "loader"
LOADER_MODULE = "fabrictune.trainer_probe.data.service"


@dataclass(kw_only=True)
class _Changes:
    """Since when something has a value, by this process's clock."""

    value: object = None
    since_s: float = 0.0

    def age_s(self, value: object, now_s: float) -> float:
        if value != self.value or not self.since_s:
            self.value, self.since_s = value, now_s
        return now_s - self.since_s


@dataclass(kw_only=True)
class NodeProcess:
    """A process that the fork server has started."""

    name: str
    channel: socket.socket
    output: RankOutput
    page: Path | None = None  # of a rank
    rank: int = -1
    pid: int = -1
    exit_code: int | None = None
    changes: dict[str, _Changes] = field(default_factory=dict)

    def age_s(self, what: str, value: object, now_s: float) -> float:
        """Return for how long something has had its value."""
        return self.changes.setdefault(what, _Changes()).age_s(value, now_s)

    def is_open(self) -> bool:
        """Return whether there are messages of the process that have not been received."""
        try:
            return bool(self.channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def send(self, content: bytes) -> None:
        """Send to the process, unless it is gone."""
        with suppress(OSError):
            self.channel.send(content)

    def close(self) -> None:
        """Close the executor's ends."""
        self.channel.close()
        self.output.drain()
        self.output.close()


def rank_status(process: NodeProcess, now_s: float) -> RankStatus:
    """Return what is seen of a rank."""
    assert process.page is not None, "of a rank"
    page, reading = _read(process.page), read_process(process.pid) if process.pid > 0 else None
    state = GONE if process.exit_code is not None else "R" if reading is None else reading.state
    cpu_s = 0.0 if reading is None else reading.cpu_s
    num_switches = num_context_switches(process.pid) if state in STOPPED else 0
    values = {} if page is None else {name: getattr(page, name) for name in _FROM_PAGE}
    status = RankStatus(
        rank=process.rank,
        pid=process.pid,
        quiet_s=0.0,
        section_s=0.0,
        process_state=state,
        cpu_s=cpu_s,
        exit_code=process.exit_code,
        **{"section": "start", "step": -1, "num_changes": 0, **values},
    )
    return replace(
        status,
        quiet_s=process.age_s("page", status.num_changes, now_s),
        section_s=process.age_s("section", status.section, now_s),
        idle_s=process.age_s("cpu", cpu_s, now_s),
        state_s=process.age_s("state", (state, num_switches), now_s),
    )


_FROM_PAGE = ("section", "step", "num_changes", "issued", "waits_for", "tag", "sent_bytes", "error")


def _read(path: Path) -> PageReading | None:
    """Return a page, None before it is there."""
    try:
        return read_page(path)
    except (OSError, FabrictuneError):
        return None


class Services:
    """The loader and the store of a node, once seen kept in the list."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._changes: dict[str, _Changes] = {}

    def statuses(self, ranks: Iterable[NodeProcess], store: NodeProcess | None) -> tuple[ServiceStatus, ...]:
        """Return what is seen of the services of a generation's processes."""
        if LOADER not in self._pids:
            for process in ranks:
                for pid in children(process.pid) if process.pid > 0 else ():
                    if LOADER_MODULE in command_of(pid):
                        self._pids[LOADER] = pid
        if store is not None and store.pid > 0:
            self._pids["store"] = store.pid
        exit_codes: Mapping[str, int | None] = {"store": store.exit_code if store is not None else None}
        return tuple(self._status(name, pid, exit_codes.get(name)) for name, pid in self._pids.items())

    def _status(self, name: str, pid: int, exit_code: int | None) -> ServiceStatus:
        state = GONE if exit_code is not None else read_process(pid).state
        age_s = self._changes.setdefault(name, _Changes()).age_s(state, time.monotonic())
        return ServiceStatus(name=name, pid=pid, process_state=state, state_s=age_s, exit_code=exit_code)
