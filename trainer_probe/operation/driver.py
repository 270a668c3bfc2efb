"""The driver's process: connections, journal and backend around the control of a job.

One loop takes messages from a queue and carries out the control's commands in order. Connections are read by threads
(`node_connections.py`), and others start and end nodes (`node_requests.py`), so that a backend or node that does not
answer holds nothing up.
Everything is recorded before it is done; a driver that is killed between the two finds it in the journal.
"""

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from fabrictune.foundation.errors import FabrictuneError, UnavailableError
from fabrictune.trainer_probe.operation.backends.backend import Backend
from fabrictune.trainer_probe.operation.commands import Command, EndNode, Finish, Record, Send, StartNode
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.job_control import JobControl
from fabrictune.trainer_probe.operation.journal import Journal
from fabrictune.trainer_probe.operation.messages import Connection, Listener
from fabrictune.trainer_probe.operation.node_connections import NodeConnections
from fabrictune.trainer_probe.operation.node_requests import NodeEnded, NodeRequests, NodeStarted
from fabrictune.trainer_probe.operation.refusals import line_of

TICK_S = 0.05  # between two looks without a message
PING_S = 5.0
FAREWELL_S = 10.0  # for executors to leave when the job is over


class JobClock(Protocol):
    """Seconds since a job's first event."""

    def elapsed_s(self, clock_s: float | None = None) -> float:
        """Return the time of a moment by the machine's monotonic clock, now without one."""


@dataclass(frozen=True, kw_only=True)
class _Message:
    connection: Connection
    values: Mapping[str, Any] | None  # None at the end of the connection


class _Stop:
    """A request to end the job after the step that runs."""


_Arrival = _Message | NodeStarted | NodeEnded | _Stop


class Driver:
    """Carries out a job. `command_of` gives the command that starts a node's executor."""

    def __init__(
        self,
        control: JobControl,
        journal: Journal,
        backend: Backend,
        listener: Listener,
        clock: JobClock,
        command_of: Callable[[str], Sequence[str]],
        on_event: Callable[[Event], None] = lambda event: None,
        read_change: Callable[[], Mapping[str, Any] | None] = lambda: None,
        forget_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._control, self._journal, self._backend = control, journal, backend
        self._listener, self._clock, self._on_event = listener, clock, on_event
        self._read_change, self._forget_change = read_change, forget_change
        self._inbox = queue.SimpleQueue[_Arrival]()
        self._connections: dict[str, Connection] = {}  # by node
        self._names: dict[Connection, str] = {}
        self._finish: Finish | None = None
        self._num_events = 0
        self._requests = NodeRequests(backend, command_of, self._inbox.put)

    def run(self) -> Finish:
        """Carry out the job to its end; raises FabrictuneError where the journal cannot be written."""
        connections = NodeConnections(self._listener, self._deliver)
        next_ping_s = 0.0
        try:
            while self._finish is None:
                for message in self._take():
                    self._on_message(message)
                self._on_ended_nodes()
                if (change := self._read_change()) is not None:
                    self._do(self._control.on_change(change))
                    self._forget_change()  # it is in the journal
                self._do(self._control.on_tick(time.monotonic()))
                self._do(self._control.decide(time.monotonic()))
                if time.monotonic() >= next_ping_s:
                    next_ping_s = time.monotonic() + PING_S
                    for node in list(self._connections):
                        self._send(node, {"kind": "ping"})
            self._say_farewell()
        finally:
            self._requests.close()
            connections.close()
        return self._finish

    def record(self, kind: str, **values: Any) -> None:
        """Append an event to the journal."""
        self._record(Record(kind=kind, values=values))

    def stop(self) -> None:
        """Ask for the job's end after the step that runs; from any thread, and from a signal's handler."""
        self._inbox.put(_Stop())

    def _deliver(self, connection: Connection, values: Mapping[str, Any] | None) -> None:
        self._inbox.put(_Message(connection=connection, values=values))

    def _take(self) -> list[_Arrival]:
        """Return what has come, after a wait for it."""
        with suppress(queue.Empty):
            messages = [self._inbox.get(timeout=TICK_S)]
            while not self._inbox.empty():
                messages.append(self._inbox.get())
            return messages
        return []

    def _on_message(self, message: _Arrival) -> None:
        if isinstance(message, _Stop):
            self._do(self._control.on_stop())
        elif isinstance(message, NodeStarted):
            self._on_started(message)
        elif isinstance(message, NodeEnded):
            self._on_asked_end(message)
        elif message.values is None:
            self._on_closed(message.connection)
        else:
            try:
                self._on_values(message.connection, message.values)
            except (KeyError, TypeError, ValueError):  # not of an executor of this version
                message.connection.close()

    def _on_values(self, connection: Connection, values: Mapping[str, Any]) -> None:
        now_s, kind = time.monotonic(), values["kind"]
        if kind == "hello":
            name = str(values["node"])
            self._connections[name], self._names[connection] = connection, name
            self._do(self._control.on_hello(values, now_s))
            return
        name = self._names[connection]
        if kind == "status":
            self._do(self._control.on_status(name, values, now_s))
        elif kind == "event":
            self._do(self._control.on_event(name, values))
            self._send(name, {"kind": "ack", "number": values["number"]})

    def _on_closed(self, connection: Connection) -> None:
        name = self._names.pop(connection, None)
        if name is not None and self._connections.get(name) is connection:
            del self._connections[name]

    def _on_started(self, message: NodeStarted) -> None:
        if message.error is not None:
            cause = _refusal(message.error)
            self._do(self._control.book.note_refused_start(message.node, cause, time.monotonic()))
        self._requests.on_started(message)

    def _on_asked_end(self, message: NodeEnded) -> None:
        if message.error is not None:
            cause = _refusal(message.error)
            self._do(self._control.book.note_refused_end(message.node, cause, time.monotonic()))
        elif (code := self._requests.code_of_end(message)) is not None:
            self._do(self._control.on_node_ended(message.node, code))

    def _on_ended_nodes(self) -> None:
        """Tell the control of nodes that the backend has seen end."""
        for node, code in self._requests.newly_ended().items():
            self._do(self._control.on_node_ended(node, code))

    def _do(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Record():
                    self._record(command)
                case Send():
                    self._send(command.node, command.values)
                case StartNode():
                    self._requests.start(command.node)
                case EndNode():
                    self._requests.end(command.node)
                case Finish():
                    self._finish = command

    def _record(self, record: Record) -> None:
        elapsed_s = self._clock.elapsed_s(record.clock_s)
        number = self._journal.append(record.kind, record.values, elapsed_s=elapsed_s, origin=record.origin)
        if number <= self._num_events:
            return  # recorded before
        self._num_events = number
        event = Event(
            number=number, elapsed_s=elapsed_s, time_ns=time.time_ns(), kind=record.kind, values=record.values
        )
        self._control.on_recorded(event)
        self._on_event(event)

    def _send(self, node: str, values: Mapping[str, Any]) -> None:
        connection = self._connections.get(node)
        if connection is None:
            return
        try:
            connection.send(values)
        except (FabrictuneError, OSError):
            connection.close()  # its reader reports the end

    def _say_farewell(self) -> None:
        """Return when all nodes are gone: those that do not leave are ended."""
        self._requests.close()
        deadline_s = time.monotonic() + FAREWELL_S
        while self._backend.living() and time.monotonic() < deadline_s:
            for message in self._take():  # last events
                if isinstance(message, _Message) and message.values is not None:
                    with suppress(KeyError, TypeError, ValueError):
                        self._on_values(message.connection, message.values)
        self._backend.close()


def _refusal(error: Exception) -> str:
    """Return why a backend refuses; raises what is no refusal."""
    if not isinstance(error, UnavailableError):
        raise error
    return line_of(error)
