"""Segments of a flat buffer, one for each parameter, and the shard of a rank.

A rank keeps the parameters of a pipeline chunk in one flat buffer, padded to a multiple of the data-parallel degree.
Its data-parallel group cuts the buffer into equal shards wherever the cuts fall. So a shard contains pieces of
segments, and a figure of a whole parameter (a norm) needs the whole group. The padding belongs to no segment.

Shapes: E elements of a shard.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fabrictune.foundation.layout import Axis

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One parameter's place in a flat buffer, counted in elements."""

    name: str
    offset: int
    size: int
    is_replicated_over_tp: bool  # whole on each tensor-parallel rank; otherwise each has another part
    decays: bool  # towards zero: weights do, biases and gains don't
    first: int = 0  # its first element in the tensor-parallel part of the whole parameter; above 0 for later experts


@dataclass(frozen=True, kw_only=True)
class Shard:
    """This rank's part of one flat buffer, from the element `first` on.

    An optimizer updates `values_E`: the master copy, where a model computes in less than single precision.
    `gradients_E` are summed over the parameters' gradient group, and over the tensor-parallel one where a parameter is
    replicated; they may have less precision than the values.
    """

    name: str  # the flat buffer's, unique on its rank
    segments: tuple[Segment, ...]  # of the whole flat buffer, in order
    first: int
    values_E: "torch.Tensor"
    gradients_E: "torch.Tensor"
    axes: tuple[Axis, ...] = ("dp",)  # along which ranks have other parts of its parameters, or other experts

    def __post_init__(self) -> None:
        assert self.values_E.shape == self.gradients_E.shape, "one gradient per value"
        ends = [segment.offset + segment.size for segment in self.segments]
        assert all(end <= segment.offset for end, segment in zip(ends, self.segments[1:], strict=False)), (
            "segments in order, and apart"
        )

    def pieces(self) -> Iterator[tuple[int, slice]]:
        """Yield the number of each segment with a piece in this shard, and the piece's place in the shard."""
        length = len(self.values_E)
        for number, segment in enumerate(self.segments):
            start = max(0, segment.offset - self.first)
            stop = min(length, segment.offset + segment.size - self.first)
            if start < stop:
                yield number, slice(start, stop)

    def runs(self, block: slice) -> Iterator[tuple[slice, bool]]:
        """Yield the runs of a block of the shard, and whether they decay; what belongs to no segment does not."""
        end = block.start
        for run in self._decaying_runs:
            start, stop = max(run.start, block.start), min(run.stop, block.stop)
            if start < stop:
                if end < start:
                    yield slice(end, start), False
                yield slice(start, stop), True
                end = stop
        if end < block.stop:
            yield slice(end, block.stop), False

    @cached_property
    def _decaying_runs(self) -> tuple[slice, ...]:
        """The places in the shard of pieces with weight decay, neighbours as one."""
        runs: list[slice] = []
        for number, piece in self.pieces():
            if self.segments[number].decays:
                is_next = bool(runs) and runs[-1].stop == piece.start
                start = runs.pop().start if is_next else piece.start
                runs.append(slice(start, piece.stop))
        return tuple(runs)
