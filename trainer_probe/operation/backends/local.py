"""Nodes as executors on this machine, each in a session of its own, which survive the driver that started them.

A file names the process of each, with its start time, so that a later driver finds it and never takes another process
for it. A node has ended when its session has no process left.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.output_files import replaced_file
from fabrictune.trainer_probe.operation.backends.exit_codes import UNKNOWN_CODE
from fabrictune.trainer_probe.operation.node_folders import remove_memory
from fabrictune.trainer_probe.operation.process_table import GONE, in_session, read_process

_FILE = "executor.json"
_LOG = "executor.log"
_PATIENCE_S = 0.01  # between two looks at a session that is ending


@dataclass(frozen=True, kw_only=True)
class _Executor:
    pid: int
    started_ticks: int
    process: subprocess.Popen[bytes] | None = None  # of this driver

    def is_alive(self) -> bool:
        reading = read_process(self.pid)
        return reading.state != GONE and reading.started_ticks == self.started_ticks


class LocalBackend:
    """Executors of this machine, with a folder of each in `folder`; `job` names what they have in memory."""

    def __init__(self, folder: Path, job: str) -> None:
        self._folder, self._job = folder, job
        self._executors = dict(self._read())
        self._ended: dict[str, int] = {}
        self._lock = threading.Lock()

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start an executor in a session of its own."""
        folder = self._folder / node
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / _LOG).open("ab") as log:
                process = subprocess.Popen(  # noqa: S603  # this interpreter and this package
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **environment},
                    start_new_session=True,
                )
            started_ticks = read_process(process.pid).started_ticks
            with replaced_file(folder / _FILE) as half:
                half.write_text(json.dumps({"pid": process.pid, "started_ticks": started_ticks}))
        except (FileNotFoundError, PermissionError) as error:
            raise InputError(
                Mistake(
                    where=f"command of {node}",
                    found=f"{error.strerror}: {error.filename}",
                    next_step="look at --inside, --node-python and the job's folder",
                )
            ) from error
        except OSError as error:
            raise UnavailableError(Mistake(where=node, found=f"cannot be started ({error})")) from error
        with self._lock:
            self._ended.pop(node, None)
            self._executors[node] = _Executor(pid=process.pid, started_ticks=started_ticks, process=process)

    def end(self, node: str) -> None:
        """Kill an executor and every process of its session; returns when none is left."""
        executor = self._executors.get(node)
        if executor is None:
            return
        if executor.is_alive():
            with suppress(ProcessLookupError):
                os.kill(executor.pid, signal.SIGKILL)
        if executor.process is not None:
            executor.process.wait()
        while executor.is_alive():
            time.sleep(_PATIENCE_S)
        while pids := list(in_session(executor.pid)):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_PATIENCE_S)
        code = UNKNOWN_CODE if executor.process is None else executor.process.returncode
        self._forget(node, executor, code)

    def ended(self) -> Mapping[str, int]:
        """Return the nodes whose executors have ended, and with them all their processes."""
        for node, executor in list(self._executors.items()):
            if executor.process is not None:
                executor.process.poll()
            if not executor.is_alive():
                self.end(node)
        return dict(self._ended)

    def living(self) -> Collection[str]:
        """Return the nodes whose executors run."""
        return [node for node, executor in list(self._executors.items()) if executor.is_alive()]

    def close(self) -> None:
        """End all nodes."""
        for node in list(self._executors):
            self.end(node)

    def _forget(self, node: str, executor: _Executor, code: int) -> None:
        """Note that an executor has ended, once; another may have been started in its place meanwhile."""
        with self._lock:
            if self._executors.get(node) is not executor:
                return
            del self._executors[node]
            self._ended[node] = code
            remove_memory(self._job, node)
            (self._folder / node / _FILE).unlink(missing_ok=True)

    def _read(self) -> Mapping[str, _Executor]:
        """Return the executors that earlier drivers have started."""
        executors = {}
        for path in self._folder.glob(f"*/{_FILE}"):
            with suppress(OSError, ValueError, TypeError, KeyError):
                values = json.loads(path.read_text())
                executors[path.parent.name] = _Executor(
                    pid=int(values["pid"]), started_ticks=int(values["started_ticks"])
                )
        return executors
