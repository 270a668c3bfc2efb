"""Asking many nodes at once: so many at a time, each answer as it comes, and on Ctrl-C what there is by then."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

from fabrictune.fleet.hosts.host import FleetHost
from fabrictune.fleet.transport.answer import Answer, AskError, State
from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.progress import Progress

POLL_S = 0.2  # between looks at whether it was stopped
MAX_STARTED = 4  # asked and not yet answered, for each that may run


class Program(Protocol):
    """A program on a node, with its streams open."""

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""

    def receive(self) -> bytes:
        """Return what the program printed, b"" at its end."""

    def last_words(self) -> str:
        """Return the end of what the program said on standard error."""

    def close(self) -> None:
        """End the program's input, and with it the program."""


class Transport(Protocol):
    """A way to nodes."""

    def start(self, host: FleetHost, words: Sequence[str]) -> Program:
        """Start a program on a host; raises AskError."""

    def ask(self, host: FleetHost, script: str, stop: threading.Event) -> bytes:
        """Return what the script printed on a host; raises AskError."""

    def describe(self, host: FleetHost) -> str:
        """Return the command that a person would type to do the same."""

    def close(self) -> None:
        """Close what is shared by several hosts."""


def ask_all(
    hosts: Sequence[FleetHost],
    transport: Transport,
    script: str,
    *,
    parallel: int,
    on_answer: Callable[[Answer], None],
    progress: Progress | None = None,
) -> bool:
    """Give `on_answer` the answer of each host as it comes; returns whether Ctrl-C stopped it before all had.

    What has come when it is stopped is given as well.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="fleet")
    waiting = iter(hosts)
    running: set[Future[Answer]] = set()
    num_answers = 0

    def give(done: Iterable[Future[Answer]]) -> None:
        nonlocal num_answers
        for future in done:
            with HeldSignals():  # each once, and whole
                running.remove(future)
                on_answer(future.result())
            num_answers += 1
            if progress:
                progress(num_answers / len(hosts))

    try:
        for host in _next(waiting, MAX_STARTED * parallel):
            running.add(pool.submit(_ask, transport, host, script, stop))
        while running:
            done, _ = wait(running, timeout=POLL_S, return_when=FIRST_COMPLETED)
            give(done)
            for host in _next(waiting, len(done)):
                running.add(pool.submit(_ask, transport, host, script, stop))
    except KeyboardInterrupt:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        give([future for future in running if not future.cancelled()])
        return True
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        transport.close()
    return False


def _next(hosts: Iterator[FleetHost], number: int) -> list[FleetHost]:
    return [host for _, host in zip(range(number), hosts, strict=False)]


def _ask(transport: Transport, host: FleetHost, script: str, stop: threading.Event) -> Answer:
    started_s = time.monotonic()
    try:
        if stop.is_set():
            raise AskError(State.STOPPED)
        output = transport.ask(host, script, stop)
    except AskError as error:
        wall_s = time.monotonic() - started_s
        return Answer(name=host.name, state=error.state, detail=error.detail, wall_s=wall_s)
    return Answer(name=host.name, state=State.COLLECTED, output=output, wall_s=time.monotonic() - started_s)
