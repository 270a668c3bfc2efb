"""Pieces of a training's state: ranges of weights with the optimizer's numbers for them, whatever the layout.

A piece is a range of the elements of one tensor-parallel part of one weight, flat. The pieces of all ranks cover each
part, some of it several times where ranks hold the same. A piece of one division by tp is filled from pieces of another
by translating its range: to ranges of the whole weight, and from those to ranges of the other division's parts.

Shapes: E elements of a piece.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from fabrictune.trainer_probe.model.initialization import part_runs
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.optimizers.segments import Shard

VALUE = "value"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A range of elements of one part of a weight, and its tensors (E) by name: master values, moments."""

    weight: str
    part: int  # which of the tensor-parallel parts; 0 of a weight that every rank has whole
    begin: int  # first element in that part
    tensors: Mapping[str, torch.Tensor]

    @property
    def end(self) -> int:
        """The element after the last."""
        return self.begin + len(self.tensors[VALUE])

    def clone(self) -> "Piece":
        """Return a piece with copies of the tensors."""
        tensors = {name: tensor.clone() for name, tensor in self.tensors.items()}
        return Piece(weight=self.weight, part=self.part, begin=self.begin, tensors=tensors)


class PieceSource(Protocol):
    """Values of a whole model, from which pieces of any layout are filled."""

    def missing(self, piece: Piece, weight: WeightSpec, tp: int) -> Sequence[str]:
        """Return what of a piece of a division by `tp` is not there, each as text."""

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        """Overwrite the tensors of a piece of a division by `tp`."""


def pieces_of(shards: Iterable[Shard], moments: Mapping[str, torch.Tensor], place: int) -> tuple[Piece, ...]:
    """Return the pieces of a rank's shards, views of its storage; `place` is the rank's in its tp group.

    `moments` are an optimizer's, named by shard and moment.
    """
    pieces = []
    for shard in shards:
        prefix = f"{shard.name}."
        own = {name.removeprefix(prefix): tensor for name, tensor in moments.items() if name.startswith(prefix)}
        tensors_E = {VALUE: shard.values_E, **own}
        for number, where in shard.pieces():
            segment = shard.segments[number]
            pieces.append(
                Piece(
                    weight=segment.name,
                    part=0 if segment.is_replicated_over_tp else place,
                    begin=segment.first + shard.first + where.start - segment.offset,
                    tensors={name: tensor_E[where] for name, tensor_E in tensors_E.items()},
                )
            )
    return tuple(pieces)


class PieceTable:
    """Pieces of all ranks of a layout, by place; a source for any other layout."""

    def __init__(self, pieces: Iterable[Piece], tp: int) -> None:
        self._tp = tp
        self._pieces: dict[tuple[str, int], list[tuple[int, Piece]]] = {}
        for piece in sorted(pieces, key=lambda piece: (piece.weight, piece.part, piece.begin, -piece.end)):
            known = self._pieces.setdefault((piece.weight, piece.part), [])
            begin = max(piece.begin, known[-1][1].end) if known else piece.begin
            if begin < piece.end:  # what other ranks hold too is taken from the first
                known.append((begin, piece))

    def missing(self, piece: Piece, weight: WeightSpec, tp: int) -> Sequence[str]:
        """Return the ranges of a piece that no piece here has, and the tensors."""
        found = []
        for part, begin, end, _ in self._ranges(piece, weight, tp):
            held = list(self._held(weight.name, part, begin, end))
            covered = sum(min(other.end, end) - first for first, other in held)
            if covered < end - begin:
                found.append(f"{weight.name}: elements {begin} to {end - 1} of part {part}")
            lacking = {name for _, other in held for name in piece.tensors.keys() - other.tensors.keys()}
            found += [f"{weight.name}: {name}" for name in sorted(lacking)]
        return tuple(dict.fromkeys(found))

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        """Overwrite the tensors of a piece of a division by `tp`; nothing of it may be missing."""
        for other, theirs, own in self.overlaps(piece, weight, tp):
            for name, tensor_E in piece.tensors.items():
                tensor_E[own].copy_(other.tensors[name][theirs])

    def overlaps(self, piece: Piece, weight: WeightSpec, tp: int) -> Iterator[tuple[Piece, slice, slice]]:
        """Yield the pieces here with elements of a piece of a division by `tp`: each with the places in both."""
        for part, begin, end, offset in self._ranges(piece, weight, tp):
            for first, other in self._held(weight.name, part, begin, end):
                stop = min(other.end, end)
                own = slice(offset + first - begin, offset + stop - begin)
                yield other, slice(first - other.begin, stop - other.begin), own

    def _ranges(self, piece: Piece, weight: WeightSpec, tp: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the ranges here that make up a piece: part, first element, end, and offset in the piece."""
        offset = 0
        for part, first, count in translate(weight, piece, tp=tp, to=self._tp):
            yield part, first, first + count, offset
            offset += count

    def _held(self, name: str, part: int, begin: int, end: int) -> Iterator[tuple[int, Piece]]:
        """Yield the pieces with elements of a range of a part, each with the first such element."""
        known = self._pieces.get((name, part), [])
        for first, piece in known[max(0, bisect_right(known, begin, key=lambda entry: entry[0]) - 1) :]:
            if first >= end:
                return
            if piece.end > begin:
                yield max(first, begin), piece


def translate(weight: WeightSpec, piece: Piece, *, tp: int, to: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of a division by `to` that a piece of a division by `tp` is: part, first element, length."""
    count = piece.end - piece.begin
    if weight.split is None or tp == to:
        yield piece.part, piece.begin, count
        return
    for first, length in part_runs(weight, tp, piece.part, piece.begin, count):
        yield from _runs_in_parts(weight, to, first, length)


def _runs_in_parts(weight: WeightSpec, tp: int, first: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of the parts that a range of the whole weight is; the inverse of `part_runs`."""
    length = weight.run_length(tp)
    while count:
        row, column = divmod(first, tp * length)
        part, place = divmod(column, length)
        taken = min(length - place, count)
        yield part, row * length + place, taken
        first, count = first + taken, count - taken
