"""The connections of a job's executors to its driver: each is read by a thread of its own, into the driver's inbox.

All end together: after `close` no socket is open, and no thread reads.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.trainer_probe.operation.messages import Connection, Listener

Deliver = Callable[[Connection, Mapping[str, Any] | None], None]


class NodeConnections:
    """Takes every peer that a listener lets in; `deliver` gets its messages, and None at the connection's end."""

    def __init__(self, listener: Listener, deliver: Deliver) -> None:
        self._listener, self._deliver = listener, deliver
        self._readers: dict[Connection, threading.Thread] = {}
        self._acceptor = threading.Thread(target=self._accept, name="connections", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """End listening and every connection; returns when no thread reads any more."""
        self._listener.close()
        self._acceptor.join()
        for connection, reader in list(self._readers.items()):
            connection.close()
            reader.join()

    def _accept(self) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                connection = self._listener.accept()
            except (FabrictuneError, OSError):
                return
            reader = threading.Thread(target=self._read, args=(connection,), name="node", daemon=True)
            self._readers[connection] = reader
            reader.start()

    def _read(self, connection: Connection) -> None:
        with connection:
            try:
                while True:
                    self._deliver(connection, connection.receive())
            except (FabrictuneError, OSError):
                self._deliver(connection, None)
        del self._readers[connection]
