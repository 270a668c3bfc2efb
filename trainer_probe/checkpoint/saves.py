"""A save of one rank, as its storages need it; and what was made of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fabrictune.foundation.records import installed_version
from fabrictune.trainer_probe.checkpoint.entries import Entry, View, header
from fabrictune.trainer_probe.checkpoint.manifest import FileIndex, Manifest, checksum
from fabrictune.trainer_probe.checkpoint.names import CheckpointId, data_file
from fabrictune.trainer_probe.checkpoint.staging import Staged
from fabrictune.trainer_probe.state.train_state import StateHead

CHUNK_BYTES = 8 * 2**20  # that a storage is given at a time

Outcome = Literal["saved", "failed", "skipped"]


@dataclass(frozen=True, kw_only=True)
class SaveReport:
    """What became of a save in one storage, on one rank."""

    step: int
    generation: int
    tier: str  # the storage's URL, without secrets
    outcome: Outcome
    cause: str = ""
    blocked_ns: int = 0  # that this save held up the rank's training
    written_bytes: int = 0
    elapsed_s: float = 0.0  # from the end of the step to the last byte, on rank 0 to the manifest


@dataclass(kw_only=True)
class Save:
    """A staged state of a rank."""

    id: CheckpointId
    head: StateHead
    staged: Staged
    began_s: float  # on the monotonic clock
    blocked_ns: int = 0
    checksums: dict[int, int] = field(default_factory=dict)  # of the entry at a place in the buffer

    def checksum(self, place: int, num_bytes: int) -> int:
        """Return the checksum of the entry at a place in the buffer, computed once for all storages."""
        if place not in self.checksums:
            self.checksums[place] = checksum(self.staged.data()[place : place + num_bytes])
        return self.checksums[place]


@dataclass(frozen=True, kw_only=True)
class FilePlan:
    """The entries of a rank's file, which are the same in every save, and their places in a buffer."""

    entries: tuple[Entry, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, views: Sequence[View], *, has_all: bool) -> "FilePlan":
        """Return the plan of a file with all of a rank's elements, or with those that it writes."""
        entries, places, offset = [], [], 0
        for view in views:
            if has_all or view.is_own:
                entries.append(replace(view.entry, offset=offset))
                places.append(view.entry.offset)
                offset += view.entry.num_bytes
        return cls(entries=tuple(entries), places=tuple(places))

    def chunks(self, data: memoryview) -> Iterator[memoryview]:
        """Yield the file's data, of neighbours in the buffer as much as a chunk may have."""
        begin = end = 0
        for entry, place in zip(self.entries, self.places, strict=True):
            if place != end or end - begin >= CHUNK_BYTES:
                if begin < end:
                    yield data[begin:end]
                begin = end = place
            end += entry.num_bytes
        if begin < end:
            yield data[begin:end]


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One rank of one start of a job, as its files name it."""

    rank: int
    num_ranks: int
    attempt: str
    part_sizes: Mapping[str, int]

    def first_bytes(self, plan: FilePlan, save: Save) -> bytes:
        """Return what a save's file begins with."""
        return header(plan.entries, {"step": str(save.id.step), "generation": str(save.id.generation)})

    def index(self, plan: FilePlan, save: Save, first: bytes, *, is_per_node: bool) -> Manifest:
        """Return the index of a save's file, which begins with the header `first`."""
        file = FileIndex(
            name=data_file(self.rank),
            rank=self.rank,
            num_bytes=len(first) + sum(entry.num_bytes for entry in plan.entries),
            data_begin=len(first),
            header_checksum=checksum(first),
            entries=plan.entries,
            checksums=tuple(
                save.checksum(place, entry.num_bytes) for entry, place in zip(plan.entries, plan.places, strict=True)
            ),
        )
        return Manifest(
            step=save.id.step,
            generation=save.id.generation,
            attempt=self.attempt,
            num_ranks=self.num_ranks,
            is_per_node=is_per_node,
            head=save.head,
            versions={name: installed_version(name) for name in ("fabrictune", "torch")},
            part_sizes=self.part_sizes,
            files=(file,),
        )
