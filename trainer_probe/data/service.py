"""The loader's process, which reads batches ahead of its workers into slots of shared memory.

One event loop. A slot is filled with the next batch as soon as every worker has released it, so that the slowest worker
misses no batch, and reading continues while workers compute. A worker that has disconnected blocks nothing. The process
ends when all its workers have connected and disconnected, or when its owner has ended and no worker is left. Errors of
the data go to every worker, later ones too.

Started by `data/loader.py`, with a listening socket as descriptor and a line of JSON on its standard input.
"""

import json
import mmap
import os
import selectors
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from fabrictune.foundation.children import end_with_parent
from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake
from fabrictune.trainer_probe.data import wire
from fabrictune.trainer_probe.data.batches import Batches, BatchSpec


@dataclass(frozen=True, kw_only=True)
class Service:
    """A loader's settings: the data, the replicas it reads for, the first place, and the slots."""

    batches: BatchSpec
    replicas: tuple[int, ...]  # of the workers it reads for
    num_workers: int  # several may want the same replica's rows
    first_place: int = 0
    num_slots: int = 4  # batches that are read or being read

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=f"loader.{name}", found=str(getattr(self, name)), allowed="1 or more")
            for name in ("num_workers", "num_slots")
            if getattr(self, name) < 1
        ]
        if mistakes:
            raise InputError(*mistakes)
        assert set(self.replicas) <= set(range(self.batches.num_replicas)), "replicas of this training"

    def to_json(self) -> str:
        """Return the settings as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the settings that `to_json` wrote."""
        settings = json.loads(text)
        batches, replicas = BatchSpec(**settings.pop("batches")), tuple(settings.pop("replicas"))
        return cls(batches=batches, replicas=replicas, **settings)


class Source:
    """The slots, and the batches to fill them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._batches = Batches(service.batches)
        self.layout = wire.Slots(
            num_slots=service.num_slots,
            replicas=service.replicas,
            rows=service.batches.rows,
            columns=service.batches.sequence_length + 1,
            id_bytes=self._batches.file.id_bytes,
        )
        self.descriptor = wire.make_memory(self.layout.num_bytes, wire.available_bytes())
        self._slots_NBRC = self.layout.over(mmap.mmap(self.descriptor, self.layout.num_bytes))
        self.bytes_read = 0

    def fill(self, step: int) -> None:
        """Read the batch of a step, counted from the loader's first, into its slot."""
        place = self._service.first_place + step * self._service.batches.batch_size
        slot_BRC = self._slots_NBRC[step % self._service.num_slots]
        for replica, rows_RC in zip(self._service.replicas, slot_BRC, strict=True):
            self._batches.read(place, replica, rows_RC)
        self.bytes_read += slot_BRC.nbytes


class Loop:
    """The event loop between a source and its workers."""

    def __init__(self, listener: socket.socket, owner: int, service: Service) -> None:
        self._service, self._listener = service, listener
        self._num_expected = service.num_workers  # that have not connected yet
        self._num_released: dict[socket.socket, int] = {}  # steps a worker is done with
        self._num_filled = 0
        self._error: dict[str, Any] | None = None
        self._has_owner = True
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._on_connection)
        self._selector.register(owner, selectors.EVENT_READ, self._on_owner)

    def run(self) -> None:
        """Serve until no worker is left or expected."""
        self._attempt(self._open)
        while self._num_released or (self._has_owner and self._num_expected):
            may_fill = self._may_fill()
            if may_fill:
                self._attempt(self._fill)  # may drop disconnected workers, so the select below must not block
            for key, _ in self._selector.select(timeout=0 if may_fill else None):
                key.data(key.fileobj)

    def _open(self) -> None:
        self._source = Source(self._service)

    def _may_fill(self) -> bool:
        """Return whether the next batch's slot is free, also of batches for workers yet to connect."""
        slowest = min([*self._num_released.values(), *([0] if self._num_expected else [])], default=0)
        return self._error is None and self._num_filled - slowest < self._service.num_slots

    def _fill(self) -> None:
        self._source.fill(self._num_filled)
        self._num_filled += 1
        self._send(list(self._num_released), self._progress())

    def _attempt(self, action: Callable[[], None]) -> None:
        """Execute an action; a FabrictuneError becomes a message to all workers, now and later."""
        try:
            action()
        except FabrictuneError as error:
            self._error = wire.encode_error(error)
            self._send(list(self._num_released), self._error)

    def _progress(self) -> dict[str, int]:
        return {"num_filled": self._num_filled, "bytes_read": self._source.bytes_read}

    def _on_connection(self, listener: socket.socket) -> None:
        worker, _ = listener.accept()
        if not wire.belongs_to_this_user(worker) or not self._num_expected:
            worker.close()
            return
        self._num_expected -= 1
        self._num_released[worker] = 0
        self._selector.register(worker, selectors.EVENT_READ, self._on_worker)
        if self._error is not None:
            self._send([worker], self._error)
        else:
            self._send([worker], asdict(self._source.layout), self._source.descriptor)
            self._send([worker], self._progress())

    def _on_worker(self, worker: socket.socket) -> None:
        try:
            message, _ = wire.receive_message(worker)
            self._num_released[worker] = message["num_released"]
        except EOFError:
            self._drop(worker)

    def _on_owner(self, owner: int) -> None:
        """Stop expecting workers, since the owner's end of the pipe has closed."""
        self._selector.unregister(owner)
        self._has_owner = False
        self._num_expected = 0
        self._selector.unregister(self._listener)

    def _send(self, workers: Sequence[socket.socket], message: dict[str, Any], *descriptors: int) -> None:
        for worker in workers:
            if worker not in self._num_released:
                continue  # dropped by an earlier message
            try:
                wire.send_message(worker, message, *descriptors)
            except ConnectionError:
                self._drop(worker)

    def _drop(self, worker: socket.socket) -> None:
        if self._num_released.pop(worker, None) is not None:
            self._selector.unregister(worker)
            worker.close()


def main() -> None:
    """Serve on the listening socket whose descriptor is the first argument; standard input is the owner's end.

    With a second one, the owner's process, this one is killed when that ends.
    """
    if len(sys.argv) > 2:
        end_with_parent(int(sys.argv[2]))
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        owner = sys.stdin.fileno()
        text = b""
        while block := os.read(owner, 4096):  # unbuffered, since a selector does not see a buffer's contents
            text += block
            if block.endswith(b"\n"):
                Loop(listener, owner, Service.from_json(text.decode())).run()
                return


if __name__ == "__main__":
    main()
