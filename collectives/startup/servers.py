"""Real store servers on this machine, each a process of its own whose processor time can be read, for tests and storms.

They listen on the loopback device, on a port of their own; Redis asks for a password, which no command line shows.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.stores import listen, serve_tcp_store
from fabrictune.foundation.children import ending_with_parent, module_command
from fabrictune.foundation.errors import Mistake, UnavailableError

MAX_CLIENTS = 20_000
# torch asks for the names of the addresses it meets; a resolver that does not answer would cost seconds each time.
QUICK_RESOLVER = {"RES_OPTIONS": "timeout:1 attempts:1"}


def require_redis_server() -> str:
    """Return where redis-server is; raises UnavailableError where it is not."""
    place = shutil.which("redis-server")
    if place is None:
        raise UnavailableError(
            Mistake(
                where="Redis",
                found="redis-server is not installed",
                next_step="install redis-server from the distribution",
            )
        )
    return place


class Server:
    """A server that is running until it is closed."""

    def __init__(self, process: subprocess.Popen[str], address: StoreAddress) -> None:
        self.process = process
        self.address = address

    def cpu_s(self) -> float:
        """Return the processor time that the server has taken, all its threads together."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9  # Linux, Documentation/scheduler

    def kill(self) -> None:
        """End the server as a power cut would."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def start_redis(*, port: int = 0, password: str = "", settings: Mapping[str, str] | None = None) -> Server:
    """Start a Redis server that keeps nothing on disk, with a new port and password where none are given.

    `settings` are further lines of its configuration. Raises UnavailableError where it is missing or does not start.
    """
    program = require_redis_server()
    port, password = port or free_port(), password or secrets.token_hex(16)
    lines = {
        "bind": "127.0.0.1",
        "port": str(port),
        "requirepass": password,
        "save": '""',
        "maxclients": str(MAX_CLIENTS),
        "tcp-backlog": "4096",
        **(settings or {}),
    }
    process = subprocess.Popen(  # noqa: S603  # the programs that `which` found, with fixed arguments
        [*ending_with_parent(), program, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write("".join(f"{name} {value}\n" for name, value in lines.items()))
    process.stdin.close()
    _await_line(process, "Ready to accept connections", "redis-server")
    return Server(process, StoreAddress(scheme="redis", host="127.0.0.1", port=port, password=password))


def start_tcp_store(*, use_libuv: bool = True) -> Server:
    """Start a process that serves a TCPStore of torch's; without libuv it is the server of torch before 2.4."""
    process = subprocess.Popen(  # noqa: S603  # this interpreter and this module
        module_command(__name__, "libuv" if use_libuv else "poll"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **QUICK_RESOLVER},
        process_group=0,  # an interrupt at the terminal goes to the owner only, whose end the server sees
    )
    line = _await_line(process, "port", "TCPStore server")
    return Server(process, StoreAddress(scheme="tcp", host="127.0.0.1", port=int(line.split()[1])))


def free_port() -> int:
    """Return a port of the loopback device that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _await_line(process: subprocess.Popen[str], text: str, name: str) -> str:
    """Return the first line of output that contains a text; raises UnavailableError if the process ends before."""
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        if text in line:
            return line
        last = line
    raise UnavailableError(Mistake(where=name, found=f"ended with exit code {process.wait()}: {last.strip()}"))


def main(server: str) -> None:
    """Serve a TCPStore until the standard input ends."""
    listener = listen()
    port = listener.getsockname()[1]
    store = serve_tcp_store(listener, use_libuv=server == "libuv")
    with suppress(BrokenPipeError):  # where the caller is gone, the standard input has ended too
        os.write(sys.stdout.fileno(), f"port {port}\n".encode())
    sys.stdin.read()
    del store


if __name__ == "__main__":
    main(sys.argv[1])
