"""Manifests: what a checkpoint holds, as JSON with a checksum of its own.

The index of one rank's file is a manifest of that file alone, written behind it. The manifest of the whole checkpoint
is made of all indices and written last: without it a shared storage has no checkpoint.

It holds the step, the generation, the head of the state (counts, loss scale, place in the data, the recipe's settings
with the layout), the versions of the programs, the size of every weight's parts, and for each file its size and each
entry's place, type and CRC32C.

Source: CRC32C: RFC 3720, appendix B.4.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from fabrictune.foundation.errors import CheckpointError, Mistake
from fabrictune.trainer_probe.checkpoint.entries import DTYPES, Entry
from fabrictune.trainer_probe.checkpoint.names import is_ours
from fabrictune.trainer_probe.state.train_state import StateHead

FORMAT, VERSION = "fabrictune-checkpoint", 1
MAX_BYTES = 2**28  # of a manifest
NEXT_STEP = "take an earlier checkpoint"
_FILE_FIELDS = ("name", "rank", "num_bytes", "data_begin", "header_checksum")


@dataclass(frozen=True, kw_only=True)
class FileIndex:
    """One rank's file: its size, where its data begin, and its entries with the checksum of each."""

    name: str
    rank: int
    num_bytes: int
    data_begin: int
    header_checksum: int  # of all before the data
    entries: tuple[Entry, ...]
    checksums: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A checkpoint, or what one rank has of it."""

    step: int
    generation: int
    attempt: str  # the same for all ranks of one start, and for no others
    num_ranks: int
    is_per_node: bool  # every rank has its own file with all it holds, and no manifest of the whole is written
    head: StateHead
    versions: Mapping[str, str]
    part_sizes: Mapping[str, int]  # elements by `weight/part`
    files: tuple[FileIndex, ...]

    @property
    def num_bytes(self) -> int:
        """Size of the files of tensors."""
        return sum(file.num_bytes for file in self.files)

    def to_bytes(self) -> bytes:
        """Return the content of a manifest's file."""
        values = {
            "format": FORMAT,
            "version": VERSION,
            "step": self.step,
            "generation": self.generation,
            "attempt": self.attempt,
            "num_ranks": self.num_ranks,
            "is_per_node": self.is_per_node,
            "versions": dict(self.versions),
            "head": self.head.to_json(),
            "part_sizes": dict(self.part_sizes),
            "files": [_file_to_json(file) for file in self.files],
        }
        return _text({**values, "crc32c": checksum(_text(values))})

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Self:
        """Return the manifest of a file's content; raises CheckpointError for a damaged one or one of another kind."""
        try:
            values = json.loads(content)
            claimed = values.pop("crc32c")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise _damaged(where, "not a manifest: no JSON object with a checksum") from None
        if (values.get("format"), values.get("version")) != (FORMAT, VERSION):
            found = f"format {values.get('format')!r}, version {values.get('version')!r}"
            raise _damaged(where, found, allowed=f"{FORMAT}, version {VERSION}")
        if claimed != checksum(_text(values)) or content != _text({**values, "crc32c": claimed}):
            raise _damaged(where, "damaged: its checksum is another")
        try:
            _check_types(values)
            return cls(
                **{name: values[name] for name in ("step", "generation", "attempt", "num_ranks", "is_per_node")},
                head=StateHead.from_json(values["head"]),
                versions=values["versions"],
                part_sizes=values["part_sizes"],
                files=tuple(_file_from_json(file) for file in values["files"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(where, f"not a manifest ({type(error).__name__}: {error})") from None


def merge(manifests: Sequence[Manifest]) -> Manifest:
    """Return one manifest of the files of all; the first file of a name counts."""
    files = {file.name: file for manifest in reversed(manifests) for file in manifest.files}
    return replace(manifests[0], files=tuple(files[name] for name in sorted(files)))


def uncovered(manifest: Manifest) -> list[str]:
    """Return the parts of weights of which some elements are in no file, as text."""
    ranges: dict[tuple[str, str], list[tuple[int, int]]] = {}
    names: set[str] = set()
    for entry in (entry for file in manifest.files for entry in file.entries):
        names.add(entry.tensor)
        key = f"{entry.weight}/{entry.part}", entry.tensor
        ranges.setdefault(key, []).append((entry.begin, entry.begin + entry.num_elements))
    if not names:
        return ["every weight"]
    return [
        f"{part}/{name}"
        for part, size in manifest.part_sizes.items()
        for name in sorted(names)
        if _reach(sorted(ranges.get((part, name), ()))) < size
    ]


def checksum(content: bytes | memoryview) -> int:
    """Return the CRC32C of a content."""
    import google_crc32c

    return int(google_crc32c.value(bytes(content)))  # takes nothing else


def _reach(ranges: Sequence[tuple[int, int]]) -> int:
    """Return how far sorted ranges go from 0 without a gap."""
    reached = 0
    for begin, end in ranges:
        if begin > reached:
            break
        reached = max(reached, end)
    return reached


def _text(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def _file_to_json(file: FileIndex) -> dict[str, Any]:
    entries = [
        [entry.weight, entry.part, entry.begin, entry.num_elements, entry.tensor, entry.dtype, entry.offset, number]
        for entry, number in zip(file.entries, file.checksums, strict=True)
    ]
    return {**{name: getattr(file, name) for name in _FILE_FIELDS}, "entries": entries}


def _check_types(values: Mapping[str, Any]) -> None:
    """Raise ValueError or TypeError where a manifest's values are not what they must be."""
    counts = (values["step"], values["generation"], values["num_ranks"], *values["part_sizes"].values())
    if not _are_counts(*counts) or not _are(str, values["attempt"], *values["versions"].values()):
        raise ValueError("counts or names of another type")
    if not _are(bool, values["is_per_node"]) or int(values["head"]["settings"]["degrees.layout.tp"]) < 1:
        raise ValueError("a layout that is none")


def _are(kind: type, *values: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _are_counts(*values: Any) -> bool:
    return _are(int, *values) and not any(isinstance(value, bool) or value < 0 for value in values)


def _file_from_json(values: Mapping[str, Any]) -> FileIndex:
    if not is_ours(values["name"]) or not _are_counts(*(values[name] for name in _FILE_FIELDS[1:])):
        raise ValueError(f"a file {values['name']!r}")
    entries, checksums = [], []
    for weight, part, begin, num_elements, tensor, dtype, offset, number in values["entries"]:
        counts = (part, begin, num_elements, offset, number)
        if dtype not in DTYPES or not _are(str, weight, tensor) or not _are_counts(*counts) or not num_elements:
            raise ValueError(f"an entry of {weight!r}")
        entry = Entry(
            weight=weight,
            part=part,
            begin=begin,
            num_elements=num_elements,
            tensor=tensor,
            dtype=dtype,
            offset=offset,
        )
        entries.append(entry)
        checksums.append(number)
    return FileIndex(
        **{name: values[name] for name in _FILE_FIELDS},
        entries=tuple(entries),
        checksums=tuple(checksums),
    )


def _damaged(where: str, found: str, *, allowed: str = "") -> CheckpointError:
    return CheckpointError(Mistake(where=where, found=found, allowed=allowed, next_step=NEXT_STEP))
