"""Ranks of a job that lasts until it is stopped, each on a host of its own, and the reports of rank 0."""

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NoReturn

from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.flaps.network import INTERFACE, FlappingNetwork

PORT = 29_500  # in a namespace of its own, where nobody else listens
NUM_RANKS = 2
TAIL_LINES = 15


class LastingJob:
    """The ranks, and what rank 0 says."""

    def __init__(self, ranks: Sequence["subprocess.Popen[str]"], errors: Sequence[IO[str]]) -> None:
        self._ranks, self._errors = ranks, errors
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def await_event(self, name: str, timeout_s: float) -> dict[str, Any]:
        """Return the next event of that name; raises UnavailableError if it does not come, or a rank has ended."""
        limit_s = scaled(timeout_s)
        deadline = time.monotonic() + limit_s
        while True:
            try:
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self._fail(f"{name!r} did not come within {limit_s:.0f} s")
            if event["event"] == name:
                return event
            if event["event"] == "gone":
                self._fail("rank 0 has ended")

    def forget_events(self) -> None:
        """Drop what has been said so far."""
        while not self._events.empty():
            self._events.get()

    def stop(self) -> None:
        """Make rank 0 end the job."""
        stdin = self._ranks[0].stdin
        assert stdin, "a pipe"
        stdin.write("stop\n")
        stdin.flush()

    def _read(self) -> None:
        stdout = self._ranks[0].stdout
        assert stdout, "a pipe"
        for line in stdout:
            self._events.put(json.loads(line))
        self._events.put({"event": "gone"})

    def _fail(self, what: str) -> NoReturn:
        lines = []
        for error in self._errors:
            error.seek(0)
            lines.extend(error.read().splitlines()[-TAIL_LINES:])
        raise UnavailableError(Mistake(where="flap job", found="\n".join([what, *lines])))


@contextmanager
def lasting_job(network: FlappingNetwork, num_bytes: int, *, port: int = PORT) -> Iterator[LastingJob]:
    """Start a rank on each host, which all-reduce so many bytes again and again, and end them with the block."""
    environment = {**QUICK_RESOLVER, **os.environ, "GLOO_SOCKET_IFNAME": INTERFACE, "OMP_NUM_THREADS": "1"}
    address = (network.hosts[0].address, str(port), str(num_bytes))
    words = module_command("fabrictune.collectives.measurement.soak_rank")
    with ExitStack() as stack:
        errors = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in network.hosts]
        ranks = list["subprocess.Popen[str]"]()
        stack.callback(_end, ranks)
        for rank, host in enumerate(network.hosts):
            ranks.append(
                subprocess.Popen(  # noqa: S603  # this interpreter and this module
                    host.command(*words, str(rank), str(NUM_RANKS), *address),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                    stderr=errors[rank],
                    text=True,
                    env=environment,
                )
            )
        yield LastingJob(ranks, errors)


def _end(ranks: "Sequence[subprocess.Popen[str]]") -> None:
    for process in ranks:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
