"""The executor of a node: it starts and ends the ranks of generations as the driver says, and reports what they do.

One loop. What it reports is a state and not a message for each change: the newest status says all that a driver has to
know, so that a driver that is started again misses nothing. Events of ranks are numbered and kept until the journal has
them. What the driver says carries a generation; one that has been ended is refused for good.

Without a driver it goes on, and ends after a limit. Its processes end with it.
"""

import json
import os
import selectors
import shutil
import signal
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.children import adopt_orphans
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.output_files import replaced_file
from fabrictune.trainer_probe.launcher import stack_dump
from fabrictune.trainer_probe.operation.driver_link import DriverLink
from fabrictune.trainer_probe.operation.fork_client import ForkClient
from fabrictune.trainer_probe.operation.heartbeats import heartbeat_values
from fabrictune.trainer_probe.operation.log_filter import LogFilter
from fabrictune.trainer_probe.operation.nic_counters import read_nic_bytes
from fabrictune.trainer_probe.operation.node_folders import NodeFolders, remove_memory
from fabrictune.trainer_probe.operation.node_memory import NodeMemory
from fabrictune.trainer_probe.operation.node_ranks import LOADER, STOPPED, NodeProcess, Services, rank_status
from fabrictune.trainer_probe.operation.observations import Heartbeat, NodeState, RankStatus, ServiceStatus
from fabrictune.trainer_probe.operation.peer_copies import PeerCopies
from fabrictune.trainer_probe.operation.process_table import GONE, read_process
from fabrictune.trainer_probe.operation.rank import STOP
from fabrictune.trainer_probe.operation.rank_output import RankOutput
from fabrictune.trainer_probe.operation.reachability import Reachability
from fabrictune.trainer_probe.operation.self_check import SelfCheck, check_apart
from fabrictune.trainer_probe.operation.tasks import JobTask, RankTask

IDLE_POLL_S = 0.25
STORE = "store"
PROCESSES_FILE = "processes.json"
WITH_LOADER = ("start", "load", "first step", "step")  # sections in which the loader has to be there
MAX_STACKS = 64  # lines of stack dumps in a status
STACKS_S = 1.0  # for them to be written: well within the driver's limit for the end, however slow the machine


@dataclass(frozen=True, kw_only=True)
class ExecutorSettings:
    """What an executor is started with."""

    job: str
    node: str
    num_slots: int
    host: str  # of the driver
    port: int
    folder: Path  # the node's own, for logs and data
    key_file: Path
    interface: str = "lo"
    address: str = "127.0.0.1"  # of the interface
    orphan_limit_s: float = 600.0


class Executor:
    """The loop of an executor. `check` is the node's self-check: JSON values, with `is_passed`."""

    def __init__(
        self,
        settings: ExecutorSettings,
        key: bytes,
        check: Callable[[], Mapping[str, Any]] = lambda: {"is_passed": True},
    ) -> None:
        self._settings = settings
        self._session = uuid.uuid4().hex
        self._folders = NodeFolders.of(settings.job, settings.node, settings.folder)
        self._generation = self._fence = 0  # the newest seen; those up to the fence have ended
        self._processes: dict[str, NodeProcess] = {}
        self._services = Services()
        self._reachability = Reachability(settings.node)
        memory = NodeMemory(self._folders.memory, max_bytes=shutil.disk_usage(self._folders.memory).total)
        memory.remove_halves()
        self._copies = PeerCopies(memory, key, host=settings.address, on_late=self._on_late_copies)
        self._log_filter = LogFilter()
        self._store_address = ""
        self._result: Mapping[str, Any] | None = None
        self._ended: Mapping[str, Any] | None = None
        self._ending: tuple[int, float, list[str]] | None = None  # generation, since when, stacks
        self._poll_s = IDLE_POLL_S
        self._number = 0
        self._written: Mapping[str, Any] = {}
        self._is_ready = self._is_leaving = self._is_stopping = False
        self._selector = selectors.DefaultSelector()
        adopt_orphans()
        self._forks = ForkClient()
        self._check = check()
        self._link = DriverLink(settings.host, settings.port, key, self._hello)
        self._selector.register(self._forks, selectors.EVENT_READ, self._on_answers)
        self._selector.register(self._link, selectors.EVENT_READ, self._on_messages)

    def run(self) -> int:
        """Serve the driver until it sends this executor away, or is gone for too long; returns an exit code."""
        next_s = 0.0
        try:
            while not self._is_leaving:
                for key, _ in self._selector.select(max(0.0, next_s - time.monotonic())):
                    key.data(key.fileobj)
                if time.monotonic() >= next_s:
                    self._report()
                    next_s = time.monotonic() + (self._poll_s if self._has_ranks() else IDLE_POLL_S)
                if time.monotonic() - self._link.heard_s > self._settings.orphan_limit_s:
                    return 1
        except EOFError:
            return 1  # the fork server is gone, and the ranks with it
        finally:
            self._link.close()
            self._forks.close()
            self._reachability.close()
            self._copies.close()
            for process in self._processes.values():
                process.close()
            remove_memory(self._settings.job, self._settings.node)
        return 0

    def leave(self) -> None:
        """End the loop."""
        self._is_leaving = True

    def _hello(self) -> dict[str, Any]:
        """Return what this executor is, and how far its generation has come."""
        settings = self._settings
        return {
            "kind": "hello",
            "node": settings.node,
            "host": socket.gethostname(),
            "address": settings.address,
            "num_slots": settings.num_slots,
            "session": self._session,
            "pid": os.getpid(),
            "check": self._check,
            "copies": list(self._copies.address),
            "generation": self._generation,
            "fence": self._fence,
        }

    def _on_messages(self, _: object) -> None:
        for message in self._link.messages():
            kind = message["kind"]
            if kind == "poll":
                self._poll_s = float(message["poll_s"])
            elif kind == "leave":
                self._is_leaving = True
            elif kind == "serve store" and self._admits(message["generation"]):
                self._serve_store(message["generation"])
            elif kind == "start" and self._admits(message["generation"]):
                self._start(message)
            elif kind == "end":
                self._end(int(message["generation"]))
            elif kind == "stop" and message["generation"] == self._generation:
                self._is_stopping = True
                for process in self._ranks():
                    process.send(STOP)

    def _admits(self, generation: int) -> bool:
        """Return whether a generation is neither old nor ended; a new one takes the place of the one before."""
        if not self._is_ready or self._ending is not None or generation <= self._fence or generation < self._generation:
            return False
        if generation > self._generation:
            if self._processes:
                return False  # the one before has not been ended
            self._generation = generation
            self._services, self._store_address, self._result = Services(), "", None
            self._is_stopping = False
        return True

    def _serve_store(self, generation: int) -> None:
        if STORE not in self._processes:
            self._fork("store", STORE, {"address": self._settings.address})

    def _start(self, message: Mapping[str, Any]) -> None:
        """Start the ranks of a generation that do not run yet."""
        job, ranks = JobTask.of_values(message["job"]), tuple(message["ranks"])
        self._reachability.watch(message["addresses"])
        if message["peer"] is not None:
            host, port = message["peer"]
            self._copies.send_to((host, port), generation=job.generation, ranks=ranks)
        spans = self._folders.spans_of(job.generation)
        for rank in ranks:
            name = f"rank {rank}"
            if name not in self._processes:
                page = self._folders.pages / f"{job.generation}-{rank}"
                task = RankTask(
                    rank=rank,
                    job=job,
                    ranks_here=ranks,
                    node=self._settings.node,
                    nodes=tuple(message["nodes"]),
                    interface=self._settings.interface,
                    page=page,
                    stacks=self._folders.logs / f"rank-{rank}.stacks",
                    data=self._folders.data,
                    memory=self._folders.memory,
                    key=self._settings.key_file.absolute(),
                    holders=tuple((host, port) for host, port in message["holders"]),
                    spans=spans,
                )
                self._fork("rank", name, task.to_values(), page=page, rank=rank)

    def _fork(self, target: str, name: str, task: Mapping[str, Any], page: Path | None = None, rank: int = -1) -> None:
        started = self._forks.start(target, name, task)
        log = self._folders.logs / f"{name.replace(' ', '-')}.log"
        output = RankOutput(started.output, log, lambda line: self._log_filter.add(line, name))
        process = NodeProcess(name=name, channel=started.channel, output=output, page=page, rank=rank)
        self._processes[name] = process
        self._selector.register(process.channel, selectors.EVENT_READ, lambda _: self._on_channel(process))
        self._selector.register(output, selectors.EVENT_READ, lambda _: self._on_output(output))

    def _on_channel(self, process: NodeProcess) -> None:
        try:
            content = process.channel.recv(2**16)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        if not content:
            self._unregister(process.channel)
            return
        message = json.loads(content)
        if message["kind"] == "event":
            self._link.send_event(message["event"], message["values"])
        elif message["kind"] == "result" and process.rank == 0:
            self._result = {"generation": self._generation, **message}
        elif message["kind"] == "store ready":
            self._store_address = f"tcp://{self._settings.address}:{message['port']}"
            self._report()

    def _on_late_copies(self, generation: int, step: int, cause: str) -> None:
        """Tell of a checkpoint in memory whose copies take too long, or fail; called by the sender's thread."""
        values = {"generation": generation, "node": self._settings.node, "step": step, "cause": cause}
        self._link.send_event("copies late", values)

    def _on_output(self, output: RankOutput) -> None:
        if not output.read():
            self._unregister(output)

    def _unregister(self, end: socket.socket | RankOutput) -> None:
        with suppress(KeyError, ValueError):  # it has ended before
            self._selector.unregister(end)

    def _on_answers(self, _: object) -> None:
        for answer in self._forks.answers():
            kind = answer["kind"]
            if kind == "ready":
                self._is_ready = True
            elif kind == "started" and answer["name"] in self._processes:
                self._processes[answer["name"]].pid = answer["pid"]
            elif kind == "exited" and answer["name"] in self._processes:
                process = self._processes[answer["name"]]
                self._drain(process)
                process.exit_code = answer["code"]
            elif kind == "empty":
                self._on_empty(answer["token"])
            self._report()

    def _drain(self, process: NodeProcess) -> None:
        """Take what a process that has ended has sent and printed."""
        while process.is_open():
            self._on_channel(process)
        process.output.drain()
        if process.output.fileno() < 0:
            self._unregister(process.output)

    def _end(self, generation: int) -> None:
        """Begin to end a generation: stacks first, bounded in time, then all processes."""
        if generation <= self._fence or self._ending is not None:
            return
        began_s = time.monotonic()
        able = [process for process in self._ranks() if process.exit_code is None and _can_answer(process.pid)]
        paths = {process.rank: (process.pid, self._folders.logs / f"rank-{process.rank}.stacks") for process in able}
        stacks = stack_dump.ask(paths, STACKS_S)[:MAX_STACKS] if paths else []
        self._fence = max(self._fence, generation)
        self._generation = max(self._generation, generation)
        self._copies.end_generation(generation)
        self._ending = (generation, began_s, stacks)
        self._forks.end_all(generation)

    def _on_empty(self, generation: int) -> None:
        """Note that no process of a generation is left."""
        assert self._ending is not None, "asked for"
        _, began_s, stacks = self._ending
        for process in self._processes.values():
            self._drain(process)
            self._unregister(process.channel)
            self._unregister(process.output)
            process.close()
            if process.page is not None:
                process.page.unlink(missing_ok=True)
        self._processes, self._ending, self._services = {}, None, Services()
        self._ended = {"generation": generation, "elapsed_s": time.monotonic() - began_s, "stacks": stacks}

    def _write_processes(self, services: Sequence[ServiceStatus]) -> None:
        """Write which processes the node has, for people and tools, whenever they change."""
        values = {
            "executor": os.getpid(),
            "fork server": self._forks.process.pid,
            "generation": self._generation,
            "ranks": {str(process.rank): process.pid for process in self._ranks() if process.exit_code is None},
            "services": {service.name: service.pid for service in services if service.process_state},
        }
        if values != self._written:
            self._written = values
            with suppress(OSError, FabrictuneError), replaced_file(self._settings.folder / PROCESSES_FILE) as half:
                half.write_text(json.dumps(values))

    def _has_ranks(self) -> bool:
        return bool(self._ranks())

    def _ranks(self) -> list[NodeProcess]:
        return [process for process in self._processes.values() if process.rank >= 0]

    def _report(self) -> None:
        """Send the node's status."""
        now_s = time.monotonic()
        ranks = self._ranks()
        services = self._services.statuses(ranks, self._processes.get(STORE))
        statuses = tuple(rank_status(process, now_s) for process in ranks)  # later: a rank's end ends its loader
        if self._is_stopping or not all(map(_has_loader, statuses)):
            services = tuple(service for service in services if service.name != LOADER)
        self._number += 1
        self._write_processes(services)
        log_lines, num_dropped_lines = self._log_filter.take_matches()
        heartbeat = Heartbeat(
            node=self._settings.node,
            generation=self._generation,
            number=self._number,
            state=self._state(),
            ranks=statuses,
            nic_bytes=read_nic_bytes(self._settings.interface),
            services=services,
            unreachable=self._reachability.unreachable(),
            log_lines=log_lines,
            num_dropped_lines=num_dropped_lines,
        )
        self._link.send_status(
            {
                "kind": "status",
                "heartbeat": heartbeat_values(heartbeat),
                "fence": self._fence,
                "store": self._store_address,
                "result": self._result,
                "ended": self._ended,
            }
        )

    def _state(self) -> NodeState:
        if not self._is_ready:
            return "joining"
        if self._ending is not None:
            return "ending"
        return "running" if self._has_ranks() else "ready"


def _can_answer(pid: int) -> bool:
    """Return whether a process can write its stacks; one that is stopped cannot."""
    return pid > 0 and read_process(pid).state not in (GONE, *STOPPED)


def _has_loader(status: RankStatus) -> bool:
    """Return whether a rank is alive and needs its loader, which ends with the rank that has started it."""
    return status.section in WITH_LOADER and status.process_state != GONE


def run_executor(settings: ExecutorSettings, key: bytes) -> int:
    """Be the executor of a node; SIGTERM ends it. Returns an exit code."""
    asked = SelfCheck(folder=str(settings.folder), interface=settings.interface, driver=(settings.host, settings.port))
    executor = Executor(settings, key, lambda: check_apart(asked))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: executor.leave())
    return executor.run()
