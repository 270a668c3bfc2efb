"""Starts and ends of nodes that a driver asks its backend for, none of which may hold its loop up.

Nodes are started by one thread and ended by one each; the answer comes to the loop as a message. A node that ended may
be started again before all have heard of its end. So what the backend says of a node counts only while no start of it
is under way: until then it is about the executor before. An end that is asked for meanwhile is that of the new one, and
waits for it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fabrictune.trainer_probe.operation.backends.backend import Backend
from fabrictune.trainer_probe.operation.backends.exit_codes import UNKNOWN_CODE


@dataclass(frozen=True, kw_only=True)
class NodeStarted:
    """The backend's answer to a start."""

    node: str
    error: Exception | None = None  # why it was not


@dataclass(frozen=True, kw_only=True)
class NodeEnded:
    """The backend's answer to an end."""

    node: str
    error: Exception | None = None  # why it was not


class NodeRequests:
    """Requests to a backend. `deliver` takes the answers, in any thread; all else is called by the loop."""

    def __init__(
        self,
        backend: Backend,
        command_of: Callable[[str], Sequence[str]],
        deliver: Callable[[NodeStarted | NodeEnded], None],
    ) -> None:
        self._backend, self._command_of, self._deliver = backend, command_of, deliver
        self._starting: set[str] = set()
        self._to_end: set[str] = set()  # once they have been started
        self._known_ended: dict[str, int] = {}
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="start nodes")

    def start(self, node: str) -> None:
        """Ask for a node's start."""
        self._starting.add(node)
        self._starter.submit(self._start, node)

    def end(self, node: str) -> None:
        """Ask for a node's end."""
        if node in self._starting:
            self._to_end.add(node)
        else:
            threading.Thread(target=self._end, args=(node,), name=f"end {node}", daemon=True).start()

    def on_started(self, answer: NodeStarted) -> None:
        """Take the answer to a start."""
        self._starting.discard(answer.node)
        if answer.error is None:
            self._known_ended.pop(answer.node, None)
        if answer.node in self._to_end:
            self._to_end.discard(answer.node)
            self.end(answer.node)

    def code_of_end(self, answer: NodeEnded) -> int | None:
        """Return the exit code of a node that has been ended; None where it has been started again since."""
        if answer.node in self._starting or answer.node in self._backend.living():
            return None
        self._known_ended[answer.node] = self._backend.ended().get(answer.node, UNKNOWN_CODE)
        return self._known_ended[answer.node]

    def newly_ended(self) -> Mapping[str, int]:
        """Return the exit codes of nodes that the backend has seen end since it was last asked."""
        found = {
            node: code
            for node, code in self._backend.ended().items()
            if node not in self._known_ended and node not in self._starting
        }
        self._known_ended |= found
        return found

    def close(self) -> None:
        """Start no more nodes; returns when the start that runs has its answer."""
        self._starter.shutdown(cancel_futures=True)

    def _start(self, node: str) -> None:
        error = _error_of(lambda: self._backend.start(node, self._command_of(node), {}))
        self._deliver(NodeStarted(node=node, error=error))

    def _end(self, node: str) -> None:
        self._deliver(NodeEnded(node=node, error=_error_of(lambda: self._backend.end(node))))


def _error_of(ask: Callable[[], None]) -> Exception | None:
    """Return what a request to the backend raises, of which the loop says what it means; None where it is granted."""
    try:
        ask()
    except Exception as error:
        return error
    return None
