"""A backend whose answers take long, asked in the background.

A driver asks often which nodes have ended, and must not wait for a cluster's controller that is busy or down. A thread
asks every so often; what it heard last is the answer. A controller that does not answer changes nothing: the nodes'
own heartbeats say whether they live.
"""

import threading
from collections.abc import Collection, Mapping, Sequence

from fabrictune.foundation.errors import UnavailableError
from fabrictune.trainer_probe.operation.backends.backend import Backend


class PollingBackend:
    """A backend that asks another every `poll_s` seconds."""

    def __init__(self, backend: Backend, *, poll_s: float = 2.0) -> None:
        self._backend, self._poll_s = backend, poll_s
        self._lock = threading.Lock()
        self._ended: Mapping[str, int] = {}
        self._living: Collection[str] = backend.living()
        self._num_starts = 0
        self._failure = ""
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="backend", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str:
        """Why the last question had no answer, "" where it had one."""
        return self._failure

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a node's executor, and forget that the node ended before."""
        self._backend.start(node, command, environment)
        with self._lock:
            self._num_starts += 1
            self._ended = {name: code for name, code in self._ended.items() if name != node}
            self._living = {*self._living, node}

    def end(self, node: str) -> None:
        """Return when a node's executor and all its processes are gone, or the node is cut off for good."""
        self._backend.end(node)
        self._ask()

    def ended(self) -> Mapping[str, int]:
        """Return the exit codes of nodes that have ended, as last heard."""
        with self._lock:
            return dict(self._ended)

    def living(self) -> Collection[str]:
        """Return the nodes that have not ended, as last heard."""
        with self._lock:
            return sorted(self._living)

    def close(self) -> None:
        """End all nodes and the thread."""
        self._is_closed.set()
        self._thread.join()
        self._backend.close()
        with self._lock:
            self._living = ()

    def _poll(self) -> None:
        while not self._is_closed.wait(self._poll_s):
            self._ask()

    def _ask(self) -> None:
        """Ask once; an answer that a start has overtaken is dropped."""
        with self._lock:
            num_starts = self._num_starts
        try:
            ended, living = self._backend.ended(), self._backend.living()
        except UnavailableError as error:
            self._failure = str(error)
            return
        self._failure = ""
        with self._lock:
            if num_starts == self._num_starts:
                self._ended, self._living = dict(ended), tuple(living)
