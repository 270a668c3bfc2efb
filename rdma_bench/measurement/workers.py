"""Workers as seen by the controller of a measurement: on this host, or on others over TCP.

A worker on this host is a process of ours, under the first Python here that can load pyverbs, on a socket that no other
user can reach. One on another host was started there (`fabrictune rdma serve`), and knows the same token.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.verbs import channel
from fabrictune.rdma_bench.verbs.channel import ChannelError
from fabrictune.rdma_bench.verbs.diagnosis import DeviceDiagnosis, require_devices

ANSWER_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10.0
DIAGNOSIS_TIMEOUT_S = 30.0
END_TIMEOUT_S = 10.0
SYSTEM_PYTHON = "/usr/bin/python3"
PACKAGES = Path(str(sys.modules["fabrictune"].__file__)).resolve().parents[1]  # the folder that has the package

_ERRORS: Mapping[str, type[FabrictuneError]] = {kind.__name__: kind for kind in (InputError, ChannelError)}


class RdmaWorker:
    """One end of a measurement."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.name = name
        self.is_waiting = False  # for an answer
        self._connection = connection

    def ask(self, request: str, *, timeout_s: float = ANSWER_TIMEOUT_S, **arguments: Any) -> Any:
        """Send a request and return its result; raises what the worker raised, and ChannelError where it is gone."""
        self.begin(request, **arguments)
        return self.finish(timeout_s=timeout_s)

    def begin(self, request: str, **arguments: Any) -> None:
        """Send a request, whose answer `finish` waits for."""
        channel.send_message(self._connection, {"do": request, **arguments})
        self.is_waiting = True

    def finish(self, *, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        """Wait for the answer to what `begin` sent."""
        try:
            answer = channel.receive_message(self._connection, within_s=scaled(timeout_s))
        except ChannelError as error:
            (mistake,) = error.mistakes
            raise ChannelError(Mistake(where=self.name, found=mistake.found)) from error
        self.is_waiting = False
        if "error" in answer:
            raise _ERRORS.get(str(answer["error"]), UnavailableError)(
                *map(self._mistake, answer.get("mistakes") or [{}])
            )
        return answer.get("result")

    def _mistake(self, reply: Mapping[str, Any]) -> Mistake:
        names = ("found", "allowed", "nearest", "next_step")
        return Mistake(where=f"{self.name}: {reply.get('where')}", **{name: str(reply.get(name, "")) for name in names})


@contextmanager
def local_worker(python: str, name: str = "this host", *, cut: str = "", heal: str = "") -> Iterator[RdmaWorker]:
    """Give a worker on this host that ends with the block, and what it held with it."""
    ours, its = socket.socketpair()
    options = ("--descriptor", str(its.fileno()), "--cut-command", cut, "--heal-command", heal)
    with (
        ours,
        subprocess.Popen(  # noqa: S603 - words of our own, and commands that this host's user gave
            worker_command(python, *options),
            pass_fds=[its.fileno()],
            env=worker_environment(),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is ours to answer: it ends when its socket does, path healed
        ) as process,
    ):
        its.close()
        try:
            yield RdmaWorker(ours, name)
        finally:
            ours.close()
            try:
                process.wait(scaled(END_TIMEOUT_S))
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def remote_worker(place: str, token: str) -> Iterator[RdmaWorker]:
    """Give a worker at `host:port`; raises InputError for no such text, ChannelError where it cannot be had."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(Mistake(where="worker", found=repr(place), allowed="HOST:PORT, where `rdma serve` listens"))
    try:
        connection = socket.create_connection((host, int(port)), scaled(CONNECT_TIMEOUT_S))
    except (OSError, OverflowError) as error:
        next_step = "fabrictune rdma serve --listen ... on that host"
        raise ChannelError(Mistake(where=place, found=f"no worker there ({error})", next_step=next_step)) from error
    with connection:
        channel.greet_as_controller(connection, token)
        yield RdmaWorker(connection, place)


def find_python(candidates: Sequence[str] = (sys.executable, SYSTEM_PYTHON)) -> str:
    """Return the first Python that can use an RDMA device; raises UnavailableError with what is wrong with the best."""
    nearest: DeviceDiagnosis | None = None
    for python in dict.fromkeys(candidates):
        if not os.access(python, os.X_OK):
            continue
        diagnosis = _diagnose(python)
        if diagnosis.problem is None:
            return python
        if nearest is None or nearest.problem in ("module missing", "ABI mismatch"):
            nearest = diagnosis
    assert nearest is not None, "this Python is one of them"
    require_devices(nearest, where="RDMA devices of this host")
    raise AssertionError("a diagnosis without a problem was returned above")


def _diagnose(python: str) -> DeviceDiagnosis:
    try:
        ran = subprocess.run(  # noqa: S603 - our own module
            module_command("fabrictune.rdma_bench.verbs.diagnosis", python=python),
            env=worker_environment(),
            capture_output=True,
            timeout=scaled(DIAGNOSIS_TIMEOUT_S),
            check=True,
        )
        return DeviceDiagnosis(**json.loads(ran.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError) as error:
        return DeviceDiagnosis(
            problem="module missing", found=f"{python}: {error}", next_step="use Python 3.11 or later"
        )


def worker_command(python: str, *options: str) -> list[str]:
    """Return the words that start a worker."""
    return module_command("fabrictune.rdma_bench.verbs.worker", *options, python=python)


def worker_environment() -> dict[str, str]:
    """Return the environment in which a Python finds the worker, wherever it is installed."""
    return {**os.environ, "PYTHONPATH": str(PACKAGES)}
