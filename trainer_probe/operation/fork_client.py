"""An executor's side of the fork server: processes are started through it, and their ends are told by it."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.foundation.children import module_command
from fabrictune.trainer_probe.operation.fork_server import MAX_MESSAGE_BYTES, send_request

_FAREWELL_S = 10.0  # for a server that is asked to end, and then is killed


@dataclass(frozen=True, kw_only=True)
class Started:
    """The executor's ends of a process: its channel, and what it prints."""

    channel: socket.socket
    output: int  # descriptor


class ForkClient:
    """A fork server as its executor uses it. It ends with the thread that makes this."""

    def __init__(self) -> None:
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.process = subprocess.Popen(  # noqa: S603  # this interpreter and this module
                module_command("fabrictune.trainer_probe.operation.fork_server", str(other.fileno()), str(os.getpid())),
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env={**os.environ, **QUICK_RESOLVER},
            )
        self._control.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are answers."""
        return self._control.fileno()

    def start(self, target: str, name: str, task: Mapping[str, Any]) -> Started:
        """Start a process; that it runs is told by `answers`."""
        channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reader, writer = os.pipe2(os.O_CLOEXEC)
        with other:
            request = {"kind": "start", "target": target, "name": name, "task": task}
            send_request(self._control, request, other.fileno(), writer)
        os.close(writer)
        channel.setblocking(False)
        os.set_blocking(reader, False)
        return Started(channel=channel, output=reader)

    def end_all(self, token: int) -> None:
        """Kill all processes; an answer of kind "empty" with the token follows when none is left."""
        send_request(self._control, {"kind": "end all", "token": token})

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield what the server has to say now; raises EOFError where it is gone."""
        while True:
            try:
                content = self._control.recv(MAX_MESSAGE_BYTES)
            except BlockingIOError:
                return
            except ConnectionError:
                content = b""
            if not content:
                raise EOFError("the fork server is gone")
            yield json.loads(content)

    def close(self) -> None:
        """End the server and all its processes."""
        self._control.close()
        try:
            self.process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
