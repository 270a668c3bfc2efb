"""The thread that sends one node's new files to its peer, at a limited rate, each file of tensors before its index."""

import re
import threading
from collections.abc import Callable
from pathlib import Path

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.operation.frames import Connection
from fabrictune.trainer_probe.operation.messages import connect
from fabrictune.trainer_probe.operation.node_memory import NodeMemory
from fabrictune.trainer_probe.operation.transfers import CONNECT_S, Throttle, TransferError, ask, send_file

Address = tuple[str, int]
LOOK_S = 0.1  # between two looks for new files, unless told of them
_RANK = re.compile(r"rank-(\d+)\.")


class CopySender:
    """Sends the files of a generation's ranks from when it is made until it is closed."""

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
        """End sending, in the middle of a file too; the thread that may wait for its peer ends by itself."""
        self._is_over.set()
        self._is_asked.set()
        connection = self._connection
        if connection is not None:
            connection.close()

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
                if self._is_over.is_set():
                    return
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


def _rank_of(name: str) -> int:
    match = _RANK.match(Path(name).name)
    return -1 if match is None else int(match[1])


def _newest_first(name: str) -> tuple[int, int, int, bool]:
    checkpoint = CheckpointId.parse(name.partition("/")[0])
    assert checkpoint is not None, "a file of a checkpoint"
    return -checkpoint.step, -checkpoint.generation, _rank_of(name), name.endswith(".json")
