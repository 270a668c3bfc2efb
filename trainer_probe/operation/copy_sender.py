"""The thread that sends one node's new files to its peer, at a limited rate, each file of tensors before its index.

A checkpoint that is being sent is finished before a newer one is begun, so that some arrive however slow the way is.
It is late where two newer ones were saved meanwhile: a lost node then costs more than two intervals.
"""

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
LOOK_S = 0.02  # between two looks for new files, unless told of them
MAX_BEHIND = 1  # checkpoints saved while one is sent
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
        note_late: Callable[[int, str], None],
    ) -> None:
        self._memory, self._key, self._peer, self._ranks = memory, key, peer, ranks
        self._generation, self._throttle, self._note, self._note_late = generation, throttle, note, note_late
        self._sent: set[str] = set()
        self._current: CheckpointId | None = None  # the newest, while it is sent
        self._told: CheckpointId | None = None  # the last one that was late
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
                    failure = f"{type(error).__name__}: {error}"
                    self._note(0, failure)
                    self._tell_late(failure)
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
            self._is_asked.wait(LOOK_S)
            self._is_asked.clear()
        if self._connection is not None:
            self._connection.close()

    def _send_new(self) -> None:
        """Send what is new, one checkpoint after another, each time the newest that is whole here."""
        while not self._is_over.is_set():
            whole = self._whole()
            waiting = [own for own in whole if not whole[own].keys() <= self._sent]
            if not waiting:
                return
            current = max(waiting)
            self._current = current if current == max(whole) else None  # copies of older ones are no bound
            for name, num_bytes in whole[current].items():
                if name not in self._sent:
                    self._send(name, num_bytes)
            if sum(own > current for own in self._whole()) > MAX_BEHIND:
                self._tell_late("")
            self._current = None

    def _whole(self) -> dict[CheckpointId, dict[str, int]]:
        """Return the files of each checkpoint of which those of all our ranks are here."""
        complete = self._memory.complete()
        self._sent &= complete.keys()
        files: dict[CheckpointId, dict[str, int]] = {}
        for name, num_bytes in complete.items():
            if _rank_of(name) in self._ranks:
                files.setdefault(_checkpoint_of(name), {})[name] = num_bytes
        return {own: of for own, of in files.items() if {_rank_of(name) for name in of} == self._ranks}

    def _tell_late(self, failure: str) -> None:
        """Tell once that the checkpoint that is being sent is late, or why it cannot be sent."""
        if self._current is not None and self._current.generation == self._generation and self._current != self._told:
            self._told = self._current
            self._note_late(self._current.step, failure)

    def _send(self, name: str, num_bytes: int) -> None:
        """Send a file, unless the peer has it."""
        if self._connection is None:
            self._connection = connect(*self._peer, self._key, timeout_s=scaled(CONNECT_S))
            there = ask(self._connection, do="list", generation=self._generation)["files"]
            self._sent |= {other for other, size in self._memory.complete().items() if there.get(other) == size}
        if name in self._sent or self._is_over.is_set():
            return
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


def _checkpoint_of(name: str) -> CheckpointId:
    checkpoint = CheckpointId.parse(name.partition("/")[0])
    assert checkpoint is not None, "a file of a checkpoint"
    return checkpoint
