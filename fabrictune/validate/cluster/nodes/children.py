"""Child processes of a node's program: their input, their bounded output, and their end with the program."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fabrictune.foundation.children import ending_with_parent, module_command

MAX_RESULT_BYTES = 16 * 2**20
MAX_ERROR_BYTES = 2**12
LAUNCHERS = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "GROUP_",
    "ROLE_",
    "MASTER_",
    "TORCHELASTIC_",
    "SLURM_STEP",
    "SLURM_PROCID",
)
RANK_PROCESS = "fabrictune.validate.cluster.nodes.rank_process"


class Children:
    """The processes that are running; `end` kills them and whatever they started."""

    def __init__(self, folder: str) -> None:
        self._folder, self._running, self._lock = folder, set[int](), threading.Lock()
        self._is_over = False

    def run(self, words: Sequence[str], given: str, environment: Mapping[str, str], limit_s: float) -> tuple[str, str]:
        """Return what a process printed, and the end of what it said on standard error.

        Raises TimeoutError, and OSError where it ends with another status than 0.
        """
        with subprocess.Popen(  # noqa: S603 - words of our own
            [*ending_with_parent(), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_own_environment(), **environment, "TMPDIR": self._folder},
            start_new_session=True,
        ) as process:
            self._begin(process.pid)
            try:
                output, said = process.communicate(given.encode(), timeout=limit_s)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"not done within {limit_s:.0f} s") from None
            finally:
                self._finish(process.pid)
        last = said[-MAX_ERROR_BYTES:].decode(errors="replace").strip()
        if process.returncode:
            raise OSError(f"ended with status {process.returncode}: {last.splitlines()[-1] if last else 'no message'}")
        return output[:MAX_RESULT_BYTES].decode(errors="replace"), last

    def run_rank(self, settings: Mapping[str, Any], limit_s: float) -> Any:
        """Return the result of a rank process; raises TimeoutError and OSError, also for what the rank reports."""
        output, _ = self.run(module_command(RANK_PROCESS), json.dumps(settings), settings["environment"], limit_s)
        try:
            answer = json.loads(output)
        except ValueError:
            raise OSError("the rank's result is no JSON, or longer than it may be") from None
        if "error" in answer:
            raise OSError(answer["error"])
        return answer["result"]

    def end(self) -> None:
        """Kill all that run, and let none begin any more."""
        with self._lock:
            self._is_over = True
            for pid in self._running:
                _kill_group(pid)

    def _begin(self, pid: int) -> None:
        with self._lock:
            self._running.add(pid)
            if self._is_over:
                _kill_group(pid)

    def _finish(self, pid: int) -> None:
        with self._lock:
            self._running.discard(pid)
            _kill_group(pid)


def _own_environment() -> dict[str, str]:
    """Return the environment without a launcher's variables, which are those of other ranks."""
    return {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
