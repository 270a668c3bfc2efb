"""The server process of a node, from which ranks and the store are forked with torch imported.

It does nothing else and has one thread, so that a fork copies no lock of another thread. Children end with it, it ends
with the executor, and processes that its children leave come to it (PR_SET_CHILD_SUBREAPER): `end all` answers when
the kernel says that it has no child left.

Requests and answers are JSON, a message each, on a socket that only this process and the executor have. A request to
start a process carries two descriptors: a channel to the executor, and standard output.
"""

import array
import gc
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Never

from fabrictune.foundation.children import adopt_orphans, end_with_parent

MAX_MESSAGE_BYTES = 2**16
PRELOADED = (  # all that a rank imports, so that a fork has nothing left to import
    "torch.distributed",
    "torch.fx.experimental.symbolic_shapes",  # with sympy, by the first backward pass
    "fabrictune.collectives.startup.process_groups",
    "fabrictune.trainer_probe.checkpoint.checkpointer",
    "fabrictune.trainer_probe.checkpoint.restoring",
    "fabrictune.trainer_probe.model.functions",
    "fabrictune.trainer_probe.operation.rank",
    "fabrictune.trainer_probe.operation.resumption",
    "fabrictune.trainer_probe.operation.store",
    "fabrictune.trainer_probe.operation.watched",
    "fabrictune.trainer_probe.training.hardware",
    "fabrictune.trainer_probe.training.loop",
    "fabrictune.trainer_probe.training.outcome",
    "fabrictune.trainer_probe.training.timed_comm",
)
TARGETS = ("rank", "store")


class ForkServer:
    """The event loop between the executor and the forked processes."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[int, str] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._wake_receiver, self._wake_sender = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_sender)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the executor closes its end, then end all children."""
        self._answer({"kind": "ready", "pid": os.getpid()})
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._control:
                    if not self._on_request():
                        self._end_all()
                        return
                else:
                    with suppress(BlockingIOError):
                        os.read(self._wake_receiver, 4096)
                    self._reap()

    def _on_request(self) -> bool:
        """Carry out one request; returns False where the executor is gone."""
        content, descriptors = _receive(self._control)
        if not content:
            return False
        request = json.loads(content)
        if request["kind"] == "start":
            self._start(request["target"], request["name"], request["task"], *descriptors)
        else:
            assert request["kind"] == "end all", request["kind"]
            self._end_all()
            self._answer({"kind": "empty", "token": request["token"]})
        return True

    def _start(self, target: str, name: str, task: Mapping[str, Any], channel: int, output: int) -> None:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            Path("/proc/self/comm").write_text(name)  # as ps and top show it
            self._become(server, target, task, channel, output)
        os.close(channel)
        os.close(output)
        self._pids[pid] = name
        self._answer({"kind": "started", "name": name, "pid": pid})

    def _become(self, server: int, target: str, task: Mapping[str, Any], channel: int, output: int) -> Never:
        """Be a rank or a store in a forked process; never returns."""
        code = 1
        try:
            end_with_parent(server)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            self._control.close()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            code = _call(target, task, socket.socket(fileno=channel))
            sys.stdout.flush()
            sys.stderr.flush()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            os._exit(code)

    def _reap(self) -> None:
        """Report the processes that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._on_exit(pid, status)

    def _on_exit(self, pid: int, status: int) -> None:
        name = self._pids.pop(pid, None)  # None of a process that a child left
        if name is not None:
            self._answer({"kind": "exited", "name": name, "pid": pid, "code": os.waitstatus_to_exitcode(status)})

    def _end_all(self) -> None:
        """Kill every child, and those that they leave, until there is none."""
        while True:
            for pid in {*self._pids, *_children()}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            self._on_exit(pid, status)

    def _answer(self, values: Mapping[str, Any]) -> None:
        with suppress(ConnectionError):
            self._control.send(json.dumps(values).encode())


def send_request(control: socket.socket, values: Mapping[str, Any], *descriptors: int) -> None:
    """Send one request to a server, with descriptors."""
    socket.send_fds(control, [json.dumps(values).encode()], list(descriptors))


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    try:
        space = socket.CMSG_SPACE(2 * array.array("i").itemsize)
        content, ancillary, _, _ = control.recvmsg(MAX_MESSAGE_BYTES, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return b"", []
    descriptors = array.array("i")
    for _level, _kind, part in ancillary:
        descriptors.frombytes(part[: len(part) - len(part) % descriptors.itemsize])
    return content, list(descriptors)


def _children() -> list[int]:
    """Return the children of this process, as far as the kernel lists them."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _call(target: str, task: Mapping[str, Any], channel: socket.socket) -> int:
    assert target in TARGETS, target
    if target == "store":
        from fabrictune.trainer_probe.operation.store import serve_store

        return serve_store(task, channel)
    from fabrictune.trainer_probe.operation.rank import run_rank

    return run_rank(task, channel)


def main() -> None:
    """Serve on the socket whose descriptor is the first argument; the second is the executor's process."""
    end_with_parent(int(sys.argv[2]))
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as control:
        control.set_inheritable(False)
        import importlib

        for name in PRELOADED:
            importlib.import_module(name)
        gc.freeze()
        ForkServer(control).run()


if __name__ == "__main__":
    main()
