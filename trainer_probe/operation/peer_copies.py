"""Copies of a node's checkpoints in the memory of another node, so that a lost host restores without storage.

Each node serves its memory to the others of the job. In the background it sends its own ranks' new files to its peer
(`peers.py`), at a limited rate, each file of tensors before its index. At a restart a node asks the others for the
files that its ranks need and that it lacks. Only what is whole has a name, so that a copy cut short is not found.

Left out: secrecy on the way; copies of storages other than memory.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.checkpoint.names import CheckpointId, data_file, index_file
from fabrictune.trainer_probe.operation.frames import ClosedError, Connection
from fabrictune.trainer_probe.operation.messages import connect, listen
from fabrictune.trainer_probe.operation.node_memory import MemoryRefusedError, NodeMemory
from fabrictune.trainer_probe.operation.transfers import Throttle, TransferError, ask, receive_file, send_file

Address = tuple[str, int]
CONNECT_S = 5.0
LOOK_S = 0.5  # between two looks for new files, unless told of them
MAX_SERVED = 32  # connections at once
_RANK = re.compile(r"rank-(\d+)\.")


@dataclass(frozen=True, kw_only=True)
class CopyStatus:
    """What has been sent to the peer so far."""

    num_files: int = 0
    num_bytes: int = 0
    failure: str = ""  # of the last attempt, "" after one that succeeded


@dataclass(frozen=True, kw_only=True)
class PullResult:
    """What a node has taken from others before its ranks start."""

    num_files: int
    num_bytes: int
    checkpoints: tuple[CheckpointId, ...]  # of which the ranks' files are all there now, the newest first
    failures: tuple[str, ...]  # of nodes that were asked


class PeerCopies:
    """One node's part: serves its memory, sends copies to its peer, and takes what its ranks need."""

    def __init__(
        self, memory: NodeMemory, key: bytes, *, host: str = "127.0.0.1", bytes_per_s: float | None = None
    ) -> None:
        """Serve the memory on a free port of `host`; raises InputError where that is no address of this machine."""
        self.memory, self.status = memory, CopyStatus()
        self._key, self._bytes_per_s = key, bytes_per_s
        self._listener = listen(host, 0, key)
        self.address: Address = self._listener.address
        self._lock = threading.Lock()
        self._served: set[Connection] = set()
        self._is_over = threading.Event()
        self._sender: _Sender | None = None
        threading.Thread(target=self._serve, name="copies-serve", daemon=True).start()

    def send_to(self, peer: Address | None, *, generation: int, ranks: Collection[int]) -> None:
        """Send the files of these ranks to a peer from now on, as those of a generation; None ends it."""
        self._end_sender()
        if peer is not None:
            throttle = Throttle(self._bytes_per_s)
            self._sender = _Sender(self.memory, self._key, peer, generation, frozenset(ranks), throttle, self._note)

    def look(self) -> None:
        """Look for new files now."""
        if self._sender is not None:
            self._sender.look()

    def end_generation(self, generation: int) -> None:
        """Refuse what comes of generations up to this one, and send nothing of them any more."""
        self.memory.fence = max(self.memory.fence, generation)
        self._end_sender()

    def pull(
        self, holders: Iterable[Address], *, ranks: Collection[int], generation: int, num_checkpoints: int = 2
    ) -> PullResult:
        """Take the files of these ranks that are missing here, for the newest checkpoints that can be made whole."""
        return _pull(self.memory, self._key, holders, ranks=ranks, generation=generation, num_newest=num_checkpoints)

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


class _Sender:
    """The thread that sends one node's new files to its peer."""

    def __init__(
        self,
        memory: NodeMemory,
        key: bytes,
        peer: Address,
        generation: int,
        ranks: frozenset[int],
        throttle: Throttle,
        note: Callable[[int, str], None],
    ) -> None:
        self._memory, self._key, self._peer, self._ranks = memory, key, peer, ranks
        self._generation, self._throttle, self._note = generation, throttle, note
        self._sent: set[str] = set()
        self._is_over, self._is_asked = threading.Event(), threading.Event()
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="copies-send", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Look for new files now."""
        self._is_asked.set()

    def close(self) -> None:
        """End sending, in the middle of a file too."""
        self._is_over.set()
        self._is_asked.set()
        connection = self._connection
        if connection is not None:
            connection.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._send_new()
            except (FabrictuneError, OSError, TimeoutError) as error:
                if not self._is_over.is_set():
                    self._note(0, f"{type(error).__name__}: {error}")
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
            self._is_asked.wait(LOOK_S)
            self._is_asked.clear()
        if self._connection is not None:
            self._connection.close()

    def _send_new(self) -> None:
        """Send what is new, the newest checkpoint first; what has been removed meanwhile is forgotten."""
        found = self._memory.complete()
        self._sent &= found.keys()
        new = [name for name in found if name not in self._sent and _rank_of(name) in self._ranks]
        for name in sorted(new, key=_newest_first):
            if self._is_over.is_set():
                return
            num_bytes = found[name]
            if self._connection is None:
                self._connection = connect(*self._peer, self._key, timeout_s=scaled(CONNECT_S))
                there = ask(self._connection, do="list", generation=self._generation)["files"]
                self._sent |= {other for other, size in found.items() if there.get(other) == size}
            if name in self._sent:
                continue
            ask(self._connection, do="put", name=name, bytes=num_bytes, generation=self._generation)
            path = self._memory.folder / name
            send_file(self._connection, path, num_bytes, throttle=self._throttle, is_over=self._is_over)
            answer = self._connection.receive(scaled(CONNECT_S))
            if "refused" in answer:
                raise TransferError(Mistake(where=name, found=str(answer["refused"])))
            self._sent.add(name)
            self._note(num_bytes, "")


def _pull(
    memory: NodeMemory,
    key: bytes,
    holders: Iterable[Address],
    *,
    ranks: Collection[int],
    generation: int,
    num_newest: int,
) -> PullResult:
    failures: list[str] = []
    connections: dict[Address, Connection] = {}
    files_of: dict[Address, dict[str, int]] = {}
    num_files = num_bytes = 0
    own = memory.complete()
    try:
        for holder in holders:
            try:
                connections[holder] = connect(*holder, key, timeout_s=scaled(CONNECT_S))
                files_of[holder] = dict(ask(connections[holder], do="list", generation=generation)["files"])
            except FabrictuneError as error:
                failures.append(str(error))
        for checkpoint in _whole({*own, *(name for files in files_of.values() for name in files)}, ranks)[:num_newest]:
            for name in _names(checkpoint, ranks):
                taken = None if name in own else _take(memory, connections, files_of, name, generation, failures)
                num_files, num_bytes = num_files + (taken is not None), num_bytes + (taken or 0)
    finally:
        for connection in connections.values():
            connection.close()
    checkpoints = tuple(_whole(memory.complete(), ranks)[:num_newest])
    return PullResult(
        num_files=num_files, num_bytes=num_bytes, checkpoints=checkpoints, failures=tuple(dict.fromkeys(failures))
    )


def _take(
    memory: NodeMemory,
    connections: dict[Address, Connection],
    files_of: dict[Address, dict[str, int]],
    name: str,
    generation: int,
    failures: list[str],
) -> int | None:
    """Take a file from the first node that has it and gives it whole; returns its size, None where none does."""
    for holder, files in list(files_of.items()):
        if name not in files:
            continue
        try:
            connection = connections[holder]
            num_bytes = int(ask(connection, do="get", name=name, generation=generation)["bytes"])
            receive_file(connection, memory, name, num_bytes, generation)
            return num_bytes
        except (FabrictuneError, TimeoutError, OSError, ValueError) as error:
            failures.append(f"{name}: {error}")
            del files_of[holder]  # its connection may be in the middle of a file
    return None


def _whole(names: Iterable[str], ranks: Collection[int]) -> list[CheckpointId]:
    """Return the checkpoints of which all files of these ranks are among the names, the newest first."""
    known = set(names)
    found = {CheckpointId.parse(name.partition("/")[0]) for name in known}
    whole = [own for own in found if own is not None and all(name in known for name in _names(own, ranks))]
    return sorted(whole, reverse=True)


def _names(checkpoint: CheckpointId, ranks: Collection[int]) -> list[str]:
    return [f"{checkpoint}/{file}" for rank in sorted(ranks) for file in (data_file(rank), index_file(rank))]


def _rank_of(name: str) -> int:
    match = _RANK.match(Path(name).name)
    return -1 if match is None else int(match[1])


def _newest_first(name: str) -> tuple[int, int, int, bool]:
    checkpoint = CheckpointId.parse(name.partition("/")[0])
    assert checkpoint is not None, "a file of a checkpoint"
    return -checkpoint.step, -checkpoint.generation, _rank_of(name), name.endswith(".json")
