"""Reading a checkpoint: a source of pieces for any layout that reads the byte ranges that it needs, and checks them.

`missing`, which comes before `fill`, notes which entries will be needed; those that follow one another in a file are
then read by one request. An entry is read whole, so that its checksum can be compared, and kept until others need the
room.

Shapes: E elements of an entry.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch

from fabrictune.foundation.errors import CheckpointError, Mistake
from fabrictune.trainer_probe.checkpoint.entries import DTYPES, Entry
from fabrictune.trainer_probe.checkpoint.listing import Found, find
from fabrictune.trainer_probe.checkpoint.manifest import NEXT_STEP, FileIndex, checksum
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.storage import Storage
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceTable
from fabrictune.trainer_probe.state.train_state import StateHead

REQUEST_BYTES = 16 * 2**20  # at most, of one request
KEPT_BYTES = 64 * 2**20  # of entries that have been read


def open_state(
    storages: Sequence[Storage], checkpoint: CheckpointId, *, is_partial: bool = False
) -> "tuple[StateHead, StoredPieces]":
    """Return the head of a checkpoint's state, and its pieces; raises CheckpointError where it is not complete.

    With `is_partial` what there is of it in nodes' memory will do: a rank need not see all nodes.

    The pieces' `fill` raises CheckpointError for a damaged entry, naming file and entry, and OSError for a storage that
    does not answer.
    """
    found = find(storages, checkpoint, is_partial=is_partial)
    return found.manifest.head, StoredPieces(found)


@dataclass(kw_only=True)
class _File:
    """A file with its entries in order, and which of them will be needed."""

    storage: Storage
    path: str
    index: FileIndex
    wanted: set[int] = field(default_factory=set)


class StoredPieces:
    """The pieces of a checkpoint, a source for any layout; `read_bytes` and `num_requests` count what was read."""

    def __init__(self, found: Found, *, keeps_bytes: int = KEPT_BYTES) -> None:
        self.read_bytes = self.num_requests = 0
        self._keeps_bytes = keeps_bytes
        self._kept: OrderedDict[tuple[str, int], torch.Tensor] = OrderedDict()
        self._kept_bytes = 0
        pieces: dict[tuple[str, int, int, int], dict[str, _StoredTensor]] = {}
        for index in found.manifest.files:
            file = _File(storage=found.storage_of[index.name], path=f"{found.id}/{index.name}", index=index)
            for number, entry in enumerate(index.entries):
                key = entry.weight, entry.part, entry.begin, entry.num_elements
                pieces.setdefault(key, {}).setdefault(entry.tensor, _StoredTensor(self, file, number))
        whole = (
            Piece(weight=weight, part=part, begin=begin, tensors=cast("Mapping[str, torch.Tensor]", tensors))
            for (weight, part, begin, _), tensors in pieces.items()
            if VALUE in tensors
        )
        self._table = PieceTable(whole, found.manifest.head.tp)

    def missing(self, piece: Piece, weight: WeightSpec, tp: int) -> Sequence[str]:
        """Return what of a piece of a division by `tp` is not there; what is will be read."""
        found = self._table.missing(piece, weight, tp)
        if not found:
            for other, _, _ in self._table.overlaps(piece, weight, tp):
                for name in piece.tensors:
                    cast("_StoredTensor", other.tensors[name]).want()
        return found

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        """Overwrite the tensors of a piece of a division by `tp`."""
        self._table.fill(piece, weight, tp)

    def elements(self, file: _File, number: int) -> torch.Tensor:
        """Return an entry's elements (E), read with those that will be needed after it."""
        key = file.path, number
        if key not in self._kept:
            self._read(file, number)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _read(self, file: _File, number: int) -> None:
        entries, end = file.index.entries, number + 1
        begin_bytes = entries[number].offset
        while (
            end < len(entries)
            and end in file.wanted
            and (file.path, end) not in self._kept
            and entries[end].offset + entries[end].num_bytes - begin_bytes <= REQUEST_BYTES
        ):
            end += 1
        begin = file.index.data_begin + begin_bytes
        size = entries[end - 1].offset + entries[end - 1].num_bytes - begin_bytes
        content = memoryview(file.storage.read(file.path, begin, begin + size))
        self.read_bytes += len(content)
        self.num_requests += 1
        for place in range(number, end):
            self._keep(file, place, content[entries[place].offset - begin_bytes :][: entries[place].num_bytes])

    def _keep(self, file: _File, number: int, content: memoryview) -> None:
        entry = file.index.entries[number]
        check_entry(file.storage, file.path, entry, content, file.index.checksums[number])
        self._kept_bytes += len(content)
        while self._kept and self._kept_bytes > self._keeps_bytes:
            _, oldest_E = self._kept.popitem(last=False)
            self._kept_bytes -= oldest_E.nbytes
        elements_E = torch.frombuffer(bytearray(content), dtype=getattr(torch, DTYPES[entry.dtype]))
        self._kept[(file.path, number)] = elements_E
        file.wanted.discard(number)


def check_entry(storage: Storage, path: str, entry: Entry, content: bytes | memoryview, claimed: int) -> None:
    """Raise CheckpointError where what was read is not what was written."""
    if len(content) == entry.num_bytes and checksum(content) == claimed:
        return
    found = "damaged: its CRC32C is another" if len(content) == entry.num_bytes else f"{len(content)} bytes"
    allowed = f"{entry.num_bytes} bytes with CRC32C {claimed:#010x}"
    where = f"{storage.url}/{path}: {entry.name}"
    raise CheckpointError(Mistake(where=where, found=found, allowed=allowed, next_step=NEXT_STEP))


class _StoredTensor:
    """The elements of an entry, read when they are first used: as much of a tensor as a piece table needs."""

    def __init__(self, pieces: StoredPieces, file: _File, number: int) -> None:
        self._pieces, self._file, self._number = pieces, file, number

    def __len__(self) -> int:
        """Return the number of elements."""
        return self._file.index.entries[self._number].num_elements

    def __getitem__(self, place: slice) -> torch.Tensor:
        """Return some of the elements."""
        return self._pieces.elements(self._file, self._number)[place]

    def want(self) -> None:
        """Note that this will be needed."""
        self._file.wanted.add(self._number)
