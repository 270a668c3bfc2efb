"""An executor's connection to the driver, made again whenever it is lost.

Events are numbered and kept until the driver says that they are in the journal, so that none is lost while there is no
driver; of the node's status only the newest counts. What the driver sends waits in a queue for the executor's loop.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.trainer_probe.operation.messages import Connection, connect

MAX_EVENTS = 100_000  # that wait for a driver; older ones are dropped and counted
_CONNECT_TIMEOUT_S = 5.0
_PATIENCE_S = 0.1  # between two attempts to reach a driver
_SILENCE_S = 20.0  # of a driver, after which the connection is made again


class DriverLink:
    """The link of an executor. `fileno` is readable when messages have come."""

    def __init__(self, host: str, port: int, key: bytes, hello: Callable[[], Mapping[str, Any]]) -> None:
        self._host, self._port, self._key, self._hello = host, port, key, hello
        self._changed = threading.Condition()
        self._events = deque[dict[str, Any]]()  # not yet acknowledged
        self._num_events = self._num_sent = 0  # since the start; sent over the connection of now
        self._status: Mapping[str, Any] | None = None
        self._inbox = deque[dict[str, Any]]()
        self._is_closed = False
        self._connection: Connection | None = None
        self._wake_receiver, self._wake_sender = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.num_dropped = 0
        self.heard_s = time.monotonic()  # when the driver last said something
        self.failure = ""  # of the last attempt to connect
        threading.Thread(target=self._run, name="driver link", daemon=True).start()

    def fileno(self) -> int:
        """Return the descriptor that is readable when messages have come."""
        return self._wake_receiver

    def send_event(self, kind: str, values: Mapping[str, Any]) -> None:
        """Send an event, now or when there is a driver."""
        with self._changed:
            self._num_events += 1
            time_s = time.clock_gettime(time.CLOCK_MONOTONIC)
            event = {"kind": "event", "number": self._num_events, "event": kind, "values": values, "clock_s": time_s}
            self._events.append(event)
            if len(self._events) > MAX_EVENTS:
                self._events.popleft()
                self.num_dropped += 1
            self._changed.notify_all()

    def send_status(self, status: Mapping[str, Any]) -> None:
        """Send a status in the place of one that has not left yet."""
        with self._changed:
            self._status = status
            self._changed.notify_all()

    def messages(self) -> list[dict[str, Any]]:
        """Return what the driver has sent since the last call."""
        with suppress(BlockingIOError):
            os.read(self._wake_receiver, 4096)
        with self._changed:
            messages = list(self._inbox)
            self._inbox.clear()
        return messages

    def has_unsent(self) -> bool:
        """Return whether events wait that the driver has not acknowledged."""
        with self._changed:
            return bool(self._events)

    def close(self) -> None:
        """End the connection."""
        with self._changed:
            self._is_closed = True
            connection = self._connection
            self._changed.notify_all()
        if connection is not None:
            connection.close()

    def _run(self) -> None:
        while not self._is_closed:
            try:
                connection = connect(self._host, self._port, self._key, timeout_s=_CONNECT_TIMEOUT_S)
            except (FabrictuneError, OSError) as error:
                self.failure = str(error)
                time.sleep(_PATIENCE_S)
                continue
            with self._changed:
                self._connection, self._num_sent = connection, self._num_events - len(self._events)
            try:
                connection.send(self._hello())
                threading.Thread(target=self._receive, args=(connection,), name="driver messages", daemon=True).start()
                self._send_to(connection)
            except (FabrictuneError, OSError) as error:
                self.failure = str(error)
            finally:
                connection.close()

    def _send_to(self, connection: Connection) -> None:
        """Send what there is to send until the connection ends."""
        while True:
            with self._changed:
                while not self._is_closed and connection is self._connection and not self._waiting():
                    self._changed.wait()
                if self._is_closed or connection is not self._connection:
                    return
                num_acknowledged = self._num_events - len(self._events)
                self._num_sent = max(self._num_sent, num_acknowledged)
                events = list(self._events)[self._num_sent - num_acknowledged :]
                self._num_sent = self._num_events
                status, self._status = self._status, None
            for event in events:
                connection.send(event)
            if status is not None:
                connection.send(status)

    def _waiting(self) -> bool:
        return self._status is not None or self._num_sent < self._num_events

    def _receive(self, connection: Connection) -> None:
        """Put messages into the queue until the connection ends."""
        try:
            while True:
                message = connection.receive(_SILENCE_S)
                self.heard_s = time.monotonic()
                with self._changed:
                    if message["kind"] == "ack":
                        while self._events and self._events[0]["number"] <= message["number"]:
                            self._events.popleft()
                        continue
                    if message["kind"] != "ping":
                        self._inbox.append(message)
                with suppress(BlockingIOError):
                    os.write(self._wake_sender, b"!")
        except (FabrictuneError, OSError):
            with self._changed:
                if self._connection is connection:
                    self._connection = None
                self._changed.notify_all()
