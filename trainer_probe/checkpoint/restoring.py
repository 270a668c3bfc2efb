"""Restoring a training from the newest checkpoint that all its ranks can read.

Of elements that several ranks of a group hold (in ddp all, otherwise weights replicated over tensor-parallel ranks) one
rank reads and the others are sent them; the readers take turns by bytes. What ranks hold for themselves each reads.

Where nodes have a checkpoint in memory it is read from there, and from a storage if that fails.

Ranks agree on each checkpoint twice: that all find their pieces, and that all have read them undamaged. Where one does
not, all go back to the checkpoint before, and say so. One that lacks pieces and has no manifest was never whole, or
went with its node; where there are only such, the training begins anew.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabrictune.foundation.errors import CheckpointError, FabrictuneError, Mistake
from fabrictune.foundation.layout import Axis
from fabrictune.trainer_probe.checkpoint.listing import candidates, generations, is_superseded, known_generations
from fabrictune.trainer_probe.checkpoint.names import MANIFEST, CheckpointId
from fabrictune.trainer_probe.checkpoint.reader import StoredPieces, open_state
from fabrictune.trainer_probe.checkpoint.storage import Storage
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.state.pieces import Piece

if TYPE_CHECKING:
    from fabrictune.trainer_probe.training.training import Training

Key = tuple[str, int, int, int]
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What a training went on from."""

    id: CheckpointId
    is_from_memory: bool  # of nodes; else from a storage in which it is complete
    read_bytes: int  # by all ranks
    elapsed_s: float


def restore(
    training: "Training",
    storages: Sequence[Storage],
    *,
    before_step: int | None = None,
    is_shared: bool = True,
    say: Say = lambda text: None,
) -> Restored | None:
    """Let a training go on from the newest checkpoint before a step; returns None where there is none.

    Every rank calls this, with storages of its own. Without `is_shared` each rank reads all that it needs. `say` is
    told of each checkpoint that is passed over, on rank 0. Raises CheckpointError where there are whole checkpoints and
    none is good, and InputError for the state of another training.
    """
    began_s, comm = time.monotonic(), training.comm
    failures: list[str] = []
    was_whole = False
    for checkpoint in _agree_on_candidates(comm, storages, before_step):
        for is_complete, places in _places(comm, storages, checkpoint):
            source = _SharedSource(comm, places, checkpoint, is_shared=is_shared)
            failure = source.load(training)
            if not failure:
                return Restored(
                    id=checkpoint,
                    is_from_memory=not is_complete,
                    read_bytes=sum(_exchange(comm, source.read_bytes)),
                    elapsed_s=time.monotonic() - began_s,
                )
            failures.append(f"{checkpoint} is passed over: {failure}")
            was_whole |= is_complete or source.was_whole
            if comm.rank == 0:
                say(failures[-1])
    if was_whole:
        next_step = "run `fabrictune train checkpoint verify URL`, or start without --resume, in another place"
        raise CheckpointError(Mistake(where="checkpoints", found="\n".join(failures), next_step=next_step))
    return None


def next_generation(comm: Comm, storages: Sequence[Storage]) -> int:
    """Return a number above those of all generations that the storages know, the same on all ranks."""
    found = [0]
    for storage in storages:
        try:
            names = storage.names()
            found += generations(storage, names)
            found += [own.generation for name in names if (own := CheckpointId.parse(name)) is not None]
        except OSError:
            continue
    return int(max(_exchange(comm, max(found)))) + 1


def _agree_on_candidates(comm: Comm, storages: Sequence[Storage], before_step: int | None) -> list[CheckpointId]:
    """Return what any rank sees and none knows to be superseded, the newest first.

    A node that had no part in a generation has no record of it in its memory; others have. Raises CheckpointError where
    a rank sees nothing for an error.
    """
    own: list[CheckpointId] = []
    first_steps: dict[int, int] = {}
    failure = ""
    try:
        own = candidates(storages, before_step=before_step)
        first_steps = known_generations(storages)
    except OSError as error:
        failure = str(error)
    seen = [[found.step, found.generation] for found in own]
    answers = _exchange(comm, [failure, seen, list(first_steps.items())])
    failures = sorted({found for found, *_ in answers if found})
    if failures:
        raise CheckpointError(*(Mistake(where="checkpoints", found=f"not readable ({found})") for found in failures))
    known = {generation: step for *_, records in answers for generation, step in records}
    everything = {CheckpointId(step=step, generation=number) for _, ids, _ in answers for step, number in ids}
    return [found for found in sorted(everything, reverse=True) if not is_superseded(found, known)]


def _places(
    comm: Comm, storages: Sequence[Storage], checkpoint: CheckpointId
) -> Iterator[tuple[bool, Sequence[Storage]]]:
    """Yield where a checkpoint is looked for, and whether it is complete there: nodes' memory first, if any has it.

    A storage that does not answer counts as one with a manifest. All ranks are given the same.
    """
    places: dict[bool, list[Storage]] = {False: [], True: []}
    for storage in storages:
        try:
            names = storage.files(str(checkpoint))
        except OSError:
            names = {MANIFEST: 0}
        if names:
            places[MANIFEST in names].append(storage)
    answers = _exchange(comm, [bool(places[is_complete]) for is_complete in (False, True)])
    for is_complete in (False, True):
        if any(answer[is_complete] for answer in answers):
            yield is_complete, places[is_complete]


class _SharedSource:
    """The pieces of a checkpoint, of which a rank reads its part and is sent the rest."""

    def __init__(self, comm: Comm, storages: Sequence[Storage], checkpoint: CheckpointId, *, is_shared: bool) -> None:
        self._comm, self._storages, self._checkpoint = comm, storages, checkpoint
        self._is_shared = is_shared
        self._source: StoredPieces | None = None
        self._needed: list[tuple[Piece, WeightSpec, int]] = []
        self._axes: dict[Key, Axis] = {}
        self._loads: dict[Axis, list[int]] = {}
        self._failure = ""
        self._has_agreed = False
        self.was_whole = False  # no rank has missed a piece

    @property
    def read_bytes(self) -> int:
        """Bytes that this rank has read."""
        return 0 if self._source is None else self._source.read_bytes

    def load(self, training: "Training") -> str:
        """Load the state; returns why not, for any rank, or ""."""
        try:
            head, self._source = open_state(self._storages, self._checkpoint, is_partial=True)
            heads: Any = head.to_json()
        except (CheckpointError, OSError) as error:
            head, heads, self._failure = None, None, _line(error)
        if failure := self._agree(heads):
            return failure
        assert head is not None, "else not agreed"
        try:
            training.load(head, self)
        except CheckpointError as error:  # from `fill`: all ranks raise it alike
            return _line(error)
        return next(filter(None, _exchange(self._comm, self._failure)), "")

    def missing(self, piece: Piece, weight: WeightSpec, tp: int) -> Sequence[str]:
        """Return nothing; what is missing is agreed upon before the first piece is filled."""
        self._needed.append((piece, weight, tp))
        return ()

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        """Overwrite the tensors of a piece, read here or sent by the reader; raises CheckpointError on all ranks."""
        if not self._has_agreed:
            self._prepare()
        axis = self._axes.get(_key(piece))
        if axis is None:
            self._read(piece, weight, tp)
            return
        root = self._reader(axis, piece)
        if root == self._comm.rank:
            self._read(piece, weight, tp)
        for name in sorted(piece.tensors):
            self._comm.share(piece.tensors[name], root=root, axis=axis)

    def _prepare(self) -> None:
        """Find out which pieces others hold too, and what is missing, on all ranks."""
        self._has_agreed = True
        tables = [
            {tuple(key) for key in keys} for keys in _exchange(self._comm, [_key(need[0]) for need in self._needed])
        ]
        if self._is_shared:
            self._axes = {
                key: axis
                for piece, _, _ in self._needed
                if (axis := self._axis(key := _key(piece), tables)) is not None
            }
        assert self._source is not None, "agreed upon"
        missing: list[str] = []
        for piece, weight, tp in self._needed:
            axis = self._axes.get(_key(piece))
            if axis is None or self._reader(axis, piece) == self._comm.rank:
                missing += self._source.missing(piece, weight, tp)
        self._loads.clear()
        self._failure = f"not there: {'; '.join(missing[:4])}" if missing else ""
        if failure := self._agree(None):
            raise CheckpointError(Mistake(where=str(self._checkpoint), found=failure))
        self.was_whole = True

    def _axis(self, key: Key, tables: Sequence[set[Key]]) -> Axis | None:
        """Return the axis whose group is the largest of those in which all hold the same piece, None if none does."""
        groups = {axis: self._comm.members(axis) for axis in self._comm.layout.axes}
        same = [axis for axis, ranks in groups.items() if len(ranks) > 1 and all(key in tables[rank] for rank in ranks)]
        return max(same, key=lambda axis: len(groups[axis]), default=None)

    def _reader(self, axis: Axis, piece: Piece) -> int:
        """Return which rank of the group reads a piece: the one that has read the least; all count alike."""
        ranks = self._comm.members(axis)
        loads = self._loads.setdefault(axis, [0] * len(ranks))
        place = loads.index(min(loads))
        loads[place] += piece.end - piece.begin
        return ranks[place]

    def _read(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        assert self._source is not None, "agreed upon"
        if self._failure:
            return
        try:
            self._source.fill(piece, weight, tp)
        except (CheckpointError, OSError) as error:
            self._failure = _line(error)

    def _agree(self, head: Any) -> str:
        """Return why any rank cannot go on, or has another head; ""."""
        answers = _exchange(self._comm, [self._failure, head])
        failure: str = next((found for found, _ in answers if found), "")
        if not failure and any(other != answers[0][1] for _, other in answers):
            failure = "ranks read different heads of the state"
        return failure


def _key(piece: Piece) -> Key:
    return piece.weight, piece.part, piece.begin, piece.end


def _exchange(comm: Comm, value: Any) -> list[Any]:
    """Return what each rank gives, JSON values, in order of ranks."""
    return [json.loads(content) for content in comm.exchange_bytes(json.dumps(value).encode())]


def _line(error: FabrictuneError | OSError) -> str:
    return " ".join(str(error).split())
