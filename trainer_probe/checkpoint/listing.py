"""Checkpoints that storages hold, and the newest that is complete.

A checkpoint is complete in a shared storage when its manifest is there. In the memory of nodes it is complete when the
indices in all the storages given, of one start of a job, have every element of every weight between them; copies of
other nodes' files count as those do. One of a generation that another has taken over from an earlier step does not
count: a process that came back wrote it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fabrictune.foundation.errors import CheckpointError, Mistake
from fabrictune.trainer_probe.checkpoint.manifest import MAX_BYTES, Manifest, merge, uncovered
from fabrictune.trainer_probe.checkpoint.names import MANIFEST, CheckpointId, generation_of, rank_of
from fabrictune.trainer_probe.checkpoint.storage import Storage

MAX_RECORD_BYTES = 2**16

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A complete checkpoint: its manifest, and the storage of each of its files."""

    id: CheckpointId
    manifest: Manifest
    storage_of: Mapping[str, Storage]  # by name of a file


def newest(
    storages: Sequence[Storage], *, before_step: int | None = None, say: Say = lambda text: None
) -> CheckpointId | None:
    """Return the newest complete checkpoint, of an earlier step than `before_step`; None where there is none.

    Those with a damaged manifest or files missing or cut short are passed over, and `say` is told. Raises OSError where
    no storage can be read.
    """
    for checkpoint in candidates(storages, before_step=before_step):
        try:
            found = find(storages, checkpoint)
            check_sizes(found)
        except (CheckpointError, OSError) as error:
            say(f"{checkpoint} is passed over: {error}")
        else:
            return checkpoint
    return None


def candidates(storages: Sequence[Storage], *, before_step: int | None = None) -> list[CheckpointId]:
    """Return the checkpoints that may be complete, the newest first."""
    found: set[CheckpointId] = set()
    failures = []
    for storage in storages:
        try:
            names = storage.names()
            found |= {checkpoint for name in names if (checkpoint := CheckpointId.parse(name)) is not None}
        except OSError as error:
            failures.append(error)
    if storages and len(failures) == len(storages):
        raise failures[0]
    first_steps = known_generations(storages)
    return [
        checkpoint
        for checkpoint in sorted(found, reverse=True)
        if (before_step is None or checkpoint.step < before_step) and not is_superseded(checkpoint, first_steps)
    ]


def is_superseded(checkpoint: CheckpointId, first_steps: Mapping[int, int]) -> bool:
    """Return whether a later generation went on from an earlier step than a checkpoint's."""
    return any(
        generation > checkpoint.generation and step < checkpoint.step for generation, step in first_steps.items()
    )


def known_generations(storages: Sequence[Storage]) -> dict[int, int]:
    """Return the step from which each generation that a readable storage has a record of went on."""
    found: dict[int, int] = {}
    for storage in storages:
        with suppress(OSError):
            found |= generations(storage, storage.names())
    return found


def generations(storage: Storage, names: Sequence[str]) -> dict[int, int]:
    """Return the step from which each recorded generation went on; raises OSError."""
    found = {}
    for name in names:
        generation = generation_of(name)
        if generation is not None:
            try:
                found[generation] = int(json.loads(storage.read(name, 0, MAX_RECORD_BYTES))["first_step"])
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # a damaged record fences nothing: what it says is not known
    return found


def find(storages: Sequence[Storage], checkpoint: CheckpointId, *, is_partial: bool = False) -> Found:
    """Return a complete checkpoint; raises CheckpointError where none of the storages has it whole.

    With `is_partial` what there is in nodes' memory will do.
    """
    mistakes: list[Mistake] = []
    parts: dict[str, list[tuple[Storage, Manifest]]] = {}
    for storage in storages:
        try:
            files = storage.files(str(checkpoint))
            if MANIFEST in files:
                manifest = _read(storage, checkpoint, MANIFEST)
                return Found(
                    id=checkpoint, manifest=manifest, storage_of={file.name: storage for file in manifest.files}
                )
            for index in _indices(storage, checkpoint, files, mistakes):
                parts.setdefault(index.attempt, []).append((storage, index))
        except CheckpointError as error:
            mistakes += error.mistakes
        except OSError as error:
            mistakes.append(Mistake(where=f"{storage.url}/{checkpoint}", found=f"not readable ({error})"))
    for own in parts.values():
        whole = merge([index for _, index in own])
        if not is_partial and (missing := uncovered(whole)):
            found = f"incomplete: {len(missing)} parts of weights lack elements, the first {missing[0]}"
            mistakes.append(Mistake(where=str(checkpoint), found=found))
            continue
        places = {file.name: storage for storage, index in reversed(own) for file in index.files}
        return Found(id=checkpoint, manifest=whole, storage_of=places)
    raise CheckpointError(*(mistakes or [Mistake(where=str(checkpoint), found="no manifest: it was not completed")]))


def check_sizes(found: Found) -> None:
    """Raise CheckpointError for files that are gone or of another size, OSError for a storage that does not answer."""
    sizes: dict[str, Mapping[str, int]] = {}
    mistakes = []
    for file in found.manifest.files:
        storage = found.storage_of[file.name]
        if storage.url not in sizes:
            sizes[storage.url] = storage.files(str(found.id))
        size = sizes[storage.url].get(file.name)
        if size != file.num_bytes:
            is_there = "not there" if size is None else f"{size} bytes"
            where = f"{storage.url}/{found.id}/{file.name}"
            mistakes.append(Mistake(where=where, found=is_there, allowed=f"{file.num_bytes} bytes"))
    if mistakes:
        raise CheckpointError(*mistakes)


def _indices(
    storage: Storage, checkpoint: CheckpointId, files: Mapping[str, int], mistakes: list[Mistake]
) -> Iterator[Manifest]:
    """Yield the indices of ranks' files that stand for themselves; damaged ones become mistakes."""
    for name in sorted(files):
        if rank_of(name) is not None:
            try:
                index = _read(storage, checkpoint, name)
            except CheckpointError as error:
                mistakes += error.mistakes
                continue
            if index.is_per_node and all(files.get(file.name) == file.num_bytes for file in index.files):
                yield index


def _read(storage: Storage, checkpoint: CheckpointId, name: str) -> Manifest:
    where = f"{storage.url}/{checkpoint}/{name}"
    manifest = Manifest.from_bytes(storage.read(f"{checkpoint}/{name}", 0, MAX_BYTES), where)
    if (manifest.step, manifest.generation) != (checkpoint.step, checkpoint.generation):
        found = f"of step {manifest.step}, generation {manifest.generation}"
        raise CheckpointError(Mistake(where=where, found=found, allowed=f"{checkpoint}, as its folder says"))
    return manifest
