"""Copies of a node's checkpoints in the memory of another node, so that a lost host restores without storage.

Each node serves its memory to the others of the job. In the background it sends its own ranks' new files to its peer
(`peers.py`, `copy_sender.py`). At a restart the ranks of a node take the files that they need and that it lacks from
the others (`memory_pull.py`). Only what is whole has a name, so that a copy cut short is not found.

Left out: secrecy on the way; copies of storages other than memory.
"""

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.trainer_probe.operation.copy_sender import Address, CopySender
from fabrictune.trainer_probe.operation.frames import ClosedError, Connection
from fabrictune.trainer_probe.operation.messages import listen
from fabrictune.trainer_probe.operation.node_memory import MemoryRefusedError, NodeMemory
from fabrictune.trainer_probe.operation.transfers import Throttle, TransferError, receive_file, send_file

MAX_SERVED = 256  # connections at once


@dataclass(frozen=True, kw_only=True)
class CopyStatus:
    """What has been sent to the peer so far."""

    num_files: int = 0
    num_bytes: int = 0
    failure: str = ""  # of the last attempt, "" after one that succeeded


class PeerCopies:
    """One node's part: serves its memory, and sends copies to its peer."""

    def __init__(
        self,
        memory: NodeMemory,
        key: bytes,
        *,
        host: str = "127.0.0.1",
        bytes_per_s: float | None = None,
        on_late: Callable[[int, int, str], None] = lambda generation, step, cause: None,
    ) -> None:
        """Serve the memory on a free port of `host`; raises InputError where that is no address of this machine.

        `on_late` is told of each checkpoint whose copies take longer than an interval, or fail: generation, step, why.
        """
        self.memory, self.status = memory, CopyStatus()
        self._key, self._bytes_per_s, self._on_late = key, bytes_per_s, on_late
        self._listener = listen(host, 0, key)
        self.address: Address = self._listener.address
        self._lock = threading.Lock()
        self._served: set[Connection] = set()
        self._is_over = threading.Event()
        self._sender: CopySender | None = None
        threading.Thread(target=self._serve, name="copies-serve", daemon=True).start()

    def send_to(self, peer: Address | None, *, generation: int, ranks: Collection[int]) -> None:
        """Send the files of these ranks to a peer from now on, as those of a generation; None ends it."""
        self._end_sender()
        if peer is not None:
            throttle = Throttle(self._bytes_per_s)
            self._sender = CopySender(
                self.memory,
                self._key,
                peer,
                generation,
                frozenset(ranks),
                throttle,
                self._note,
                lambda step, failure: self._on_late(generation, step, failure),
            )

    def look(self) -> None:
        """Look for new files now."""
        if self._sender is not None:
            self._sender.look()

    def end_generation(self, generation: int) -> None:
        """Refuse what comes of generations up to this one, and send nothing of them any more."""
        self.memory.fence = max(self.memory.fence, generation)
        self._end_sender()

    def close(self) -> None:
        """End serving and sending; the memory stays."""
        self._end_sender()
        self._is_over.set()
        self._listener.close()
        with self._lock:
            served = list(self._served)
        for connection in served:
            connection.close()

    def _end_sender(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _note(self, num_bytes: int, failure: str) -> None:
        before = self.status
        num_files = before.num_files + (not failure)
        self.status = CopyStatus(num_files=num_files, num_bytes=before.num_bytes + num_bytes, failure=failure)

    def _serve(self) -> None:
        with suppress(ClosedError):
            while True:
                connection = self._listener.accept()
                with self._lock:
                    is_full = len(self._served) >= MAX_SERVED or self._is_over.is_set()
                    if not is_full:
                        self._served.add(connection)
                if is_full:
                    connection.close()
                else:
                    threading.Thread(target=self._answer, args=(connection,), name="copies", daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        """Answer one node's requests until it ends."""
        try:
            while True:
                request = connection.receive()
                try:
                    self._answer_one(connection, request)
                except (MemoryRefusedError, TransferError, KeyError, TypeError, ValueError, OSError) as error:
                    connection.send({"refused": f"{type(error).__name__}: {error}"})
                    if request.get("do") != "list":
                        return  # chunks may be on their way
        except FabrictuneError:
            pass  # it has ended
        finally:
            with self._lock:
                self._served.discard(connection)
            connection.close()

    def _answer_one(self, connection: Connection, request: dict[str, Any]) -> None:
        kind, generation = request["do"], int(request["generation"])
        if generation <= self.memory.fence:
            raise MemoryRefusedError(
                Mistake(where="memory", found=f"generation {generation}", allowed=f"later than {self.memory.fence}")
            )
        if kind == "list":
            connection.send({"files": self.memory.complete()})
        elif kind == "put":
            name, num_bytes = str(request["name"]), int(request["bytes"])
            self.memory.path_of(name, generation)
            connection.send({"go": True})
            receive_file(connection, self.memory, name, num_bytes, generation)
            connection.send({"stored": True})
        elif kind == "get":
            path = self.memory.path_of(str(request["name"]), generation)
            num_bytes = path.stat().st_size
            connection.send({"bytes": num_bytes})
            throttle = Throttle(self._bytes_per_s)
            send_file(connection, path, num_bytes, throttle=throttle, is_over=self._is_over)
        else:
            raise ValueError(f"unknown request {kind!r}")
