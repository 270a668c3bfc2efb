"""Retention: which checkpoints a storage keeps, and the removal of the others and of halves.

The manifest goes first, then indices, then data, so that a removal that is cut short leaves nothing that looks whole.
Files that we did not write stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.checkpoint.names import MANIFEST, CheckpointId, is_ours
from fabrictune.trainer_probe.checkpoint.storage import Storage

MIN_PER_NODE = 3  # the ranks of nodes are at most one save apart, and the copies of one may be on their way


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What is kept: the last ones, and those of every so many steps for good."""

    num_last: int | None = None  # None: all
    every_steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_last", "every_steps"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(Mistake(where=f"retention: {name}", found=str(number), allowed="1 or more"))

    def removed(self, checkpoints: Sequence[CheckpointId]) -> list[CheckpointId]:
        """Return which of complete checkpoints go, the oldest first."""
        if self.num_last is None:
            return []
        old = sorted(checkpoints)[: -self.num_last]
        return [own for own in old if self.every_steps is None or own.step % self.every_steps]


def clean(storage: Storage, kept: Retention, current: CheckpointId) -> None:
    """Remove from a shared storage what is not kept, and older checkpoints without a manifest; raises OSError.

    `current` is complete, and written by the only process that cleans this storage.
    """
    found = [own for name in storage.names() if (own := CheckpointId.parse(name)) is not None]
    files = {own: storage.files(str(own)) for own in found}
    complete = [own for own in found if MANIFEST in files[own]]
    halves = [own for own in found if MANIFEST not in files[own] and _is_before(own, current)]
    for own in (*kept.removed([own for own in complete if own <= current]), *halves):
        remove(storage, own)


def clean_node(storage: Storage, kept: Retention, current: CheckpointId) -> None:
    """Remove the old checkpoints of a node's memory, whole folders with the copies of other nodes in them."""
    num_last = max(MIN_PER_NODE, kept.num_last or MIN_PER_NODE)
    found = [own for name in storage.names() if (own := CheckpointId.parse(name)) is not None]
    earlier = [own for own in found if own.generation <= current.generation and own <= current]
    for own in Retention(num_last=num_last, every_steps=kept.every_steps).removed(earlier):
        remove(storage, own)


def remove(storage: Storage, checkpoint: CheckpointId) -> None:
    """Remove a checkpoint, or half of one; raises OSError."""
    names = [name for name in storage.files(str(checkpoint)) if is_ours(name)]
    names.sort(key=lambda name: (name != MANIFEST, not name.endswith(".json"), name))
    storage.remove(str(checkpoint), names)


def _is_before(own: CheckpointId, current: CheckpointId) -> bool:
    """Whether a checkpoint was given up: of an earlier generation, or an earlier step of this one."""
    return own.generation < current.generation or (own.generation == current.generation and own.step < current.step)
