"""Verification: what the storages hold of each checkpoint, and whether all of it is as it was written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.errors import CheckpointError, Mistake
from fabrictune.foundation.layout import RANK_AXES
from fabrictune.trainer_probe.checkpoint.entries import Entry
from fabrictune.trainer_probe.checkpoint.listing import Found, candidates, check_sizes, find
from fabrictune.trainer_probe.checkpoint.manifest import FileIndex, checksum
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.storage import Storage

READ_BYTES = 16 * 2**20  # at most, at a time
MAX_NAMED = 20  # damaged entries of a file


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was read of a checkpoint, and what is wrong with it."""

    read_bytes: int
    mistakes: tuple[str, ...]


def of_step(storages: Sequence[Storage], step: int | None) -> list[CheckpointId]:
    """Return the checkpoints that may be complete, or those of a step; raises CheckpointError where there is none."""
    try:
        found = [own for own in candidates(storages) if step is None or own.step == step]
    except OSError as error:
        raise CheckpointError(Mistake(where=storages[0].url, found=f"not readable ({error})")) from error
    if not found:
        places = ", ".join(storage.url for storage in storages)
        next_step = "run `fabrictune train checkpoint list`" if step is not None else "check the place"
        raise CheckpointError(
            Mistake(
                where=places, found="no checkpoint" + ("" if step is None else f" of step {step}"), next_step=next_step
            )
        )
    return found


def describe_all(storages: Sequence[Storage]) -> list[dict[str, Any]]:
    """Return a row for each checkpoint, the newest first, from manifests and sizes alone; JSON values."""
    try:
        known = candidates(storages)
    except OSError as error:
        raise CheckpointError(Mistake(where=storages[0].url, found=f"not readable ({error})")) from error
    rows = []
    for own in known:
        row: dict[str, Any] = {"checkpoint": str(own), "step": own.step, "generation": own.generation, "problem": ""}
        try:
            found = find(storages, own)
            check_sizes(found)
        except (CheckpointError, OSError) as error:
            rows.append({**row, "problem": " ".join(str(error).split())})
            continue
        settings, manifest = found.manifest.head.settings, found.manifest
        degrees = {axis: settings.get(f"degrees.layout.{axis}", 1) for axis in RANK_AXES}
        layout = ", ".join(f"{axis} {degree}" for axis, degree in degrees.items())
        row |= {"num_bytes": manifest.num_bytes, "num_files": len(manifest.files), "layout": layout}
        rows.append({**row, "versions": dict(manifest.versions)})
    return rows


def verify(storages: Sequence[Storage], checkpoint: CheckpointId) -> Verification:
    """Return what is wrong with a checkpoint after reading all of it."""
    try:
        found = find(storages, checkpoint)
        check_sizes(found)
    except (CheckpointError, OSError) as error:
        return Verification(read_bytes=0, mistakes=(" ".join(str(error).split()),))
    mistakes: list[str] = []
    read_bytes = 0
    for file in found.manifest.files:
        try:
            read_bytes += _verify_file(found, file, mistakes)
        except OSError as error:
            mistakes.append(f"{_where(found, file)}: not readable ({error})")
    return Verification(read_bytes=read_bytes, mistakes=tuple(mistakes))


def _verify_file(found: Found, file: FileIndex, mistakes: list[str]) -> int:
    """Read a file whole, add what is wrong with it, and return its size."""
    storage, path, where = found.storage_of[file.name], f"{found.id}/{file.name}", _where(found, file)
    first = storage.read(path, 0, file.data_begin)
    read_bytes, damaged = len(first), list[str]()
    if checksum(first) != file.header_checksum:
        damaged.append(f"{where}: header: its CRC32C is another")
    block: list[tuple[Entry, int]] = []
    for entry, claimed in zip(file.entries, file.checksums, strict=True):
        if block and entry.offset + entry.num_bytes - block[0][0].offset > READ_BYTES:
            read_bytes += _verify_block(storage, path, file, block, damaged, where)
            block = []
        block.append((entry, claimed))
    if block:
        read_bytes += _verify_block(storage, path, file, block, damaged, where)
    mistakes += damaged[:MAX_NAMED]
    if len(damaged) > MAX_NAMED:
        mistakes.append(f"{where}: and {len(damaged) - MAX_NAMED} more pieces")
    return read_bytes


def _verify_block(
    storage: Storage, path: str, file: FileIndex, block: Sequence[tuple[Entry, int]], damaged: list[str], where: str
) -> int:
    first, last = block[0][0], block[-1][0]
    size = last.offset + last.num_bytes - first.offset
    content = memoryview(storage.read(path, file.data_begin + first.offset, file.data_begin + first.offset + size))
    for entry, claimed in block:
        place = entry.offset - first.offset
        if checksum(content[place : place + entry.num_bytes]) != claimed:
            damaged.append(f"{where}: {entry.name}: its CRC32C is another")
    return len(content)


def _where(found: Found, file: FileIndex) -> str:
    return f"{found.storage_of[file.name].url}/{found.id}/{file.name}"
