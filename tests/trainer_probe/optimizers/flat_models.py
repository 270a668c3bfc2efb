"""Three small parameters in the flat buffers of a layout's ranks, with the same numbers whatever the layout.

A tensor-parallel rank holds a band of rows of `weight` and `table`, and all of `gain`; a pipeline stage holds them all
under names of its own. Sizes are odd enough for shards to be cut inside parameters, with padding at the end.
"""

import numpy as np
import torch

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.segments import Segment, Shard

SHAPES = {"weight": (4, 5), "gain": (7,), "table": (8, 3)}  # 51 elements a stage


def whole(kind: str, name: str, stage: int, step: int = 0) -> FloatArray:
    """Return the numbers of a parameter (`values`) or of its gradient in a step (`gradients`)."""
    return stream(5, kind, name, stage, step).standard_normal(SHAPES[name])


def comm_of_one() -> Comm:
    """Return the door of a process that is alone."""
    layout = ParallelLayout()
    return Comm(layout, Member(rank=0, plan=GroupPlan.of_layout(layout), process_groups={}, elapsed_s=0.0))


class FlatModel:
    """One rank's parameters: a flat buffer for each of its stages, and its shard of each."""

    def __init__(self, layout: ParallelLayout, rank: int, num_stages: int = 2) -> None:
        place = {axis: int(position) for axis, position in layout.coordinates(rank).items()}
        self._layout, self._tp = layout, place["tp"]
        self.stages = [stage for stage in range(num_stages) if stage % layout.pp == place["pp"]]
        self._segments = self._make_segments()
        length = -(-sum(segment.size for segment in self._segments) // layout.dp)
        self._first, self._stop = place["dp"] * length, (place["dp"] + 1) * length
        self.shards = [self._make_shard(stage) for stage in self.stages]

    def set_gradients(self, step: int) -> None:
        """Let the shards have the gradients of a step."""
        for stage, shard in zip(self.stages, self.shards, strict=True):
            shard.gradients_E.copy_(self._flat("gradients", stage, step)[self._first : self._stop])

    def _make_segments(self) -> tuple[Segment, ...]:
        segments, offset = [], 0
        for name in SHAPES:
            size = self._own("values", name, 0).size
            segments.append(
                Segment(
                    name=name, offset=offset, size=size, is_replicated_over_tp=name == "gain", decays=name != "gain"
                )
            )
            offset += size
        return tuple(segments)

    def _make_shard(self, stage: int) -> Shard:
        values = self._flat("values", stage)[self._first : self._stop].clone()
        return Shard(
            name=f"stage.{stage}",
            segments=self._segments,
            first=self._first,
            values_E=values,
            gradients_E=torch.zeros_like(values),
        )

    def _flat(self, kind: str, stage: int, step: int = 0) -> torch.Tensor:
        parts = [self._own(kind, name, stage, step).ravel() for name in SHAPES]
        padding = np.zeros(self._layout.dp)
        return torch.from_numpy(np.concatenate([*parts, padding]))

    def _own(self, kind: str, name: str, stage: int, step: int = 0) -> FloatArray:
        values = whole(kind, name, stage, step)
        return values if name == "gain" else np.split(values, self._layout.tp)[self._tp]


def assert_equals_whole(
    layout: ParallelLayout, shards_by_rank: list[dict[str, FloatArray]], alone: dict[str, FloatArray]
) -> None:
    """Compare the shards of all ranks, by name, with those of a process that is alone."""
    for rank, found in enumerate(shards_by_rank):
        model = FlatModel(layout, rank)
        for shard in model.shards:
            for number, piece in shard.pieces():
                segment = shard.segments[number]
                offset = shard.first + piece.start - segment.offset  # of the piece in this rank's part
                expected = _part(segment.name, alone[shard.name], layout, rank)[
                    offset : offset + piece.stop - piece.start
                ]
                np.testing.assert_allclose(found[shard.name][piece], expected, rtol=0, atol=1e-12, err_msg=segment.name)


def _part(name: str, flat: FloatArray, layout: ParallelLayout, rank: int) -> FloatArray:
    """Return a tensor-parallel rank's part of a parameter, flat, from the flat buffer of a process that is alone."""
    sizes = [int(np.prod(shape)) for shape in SHAPES.values()]
    begin = dict(zip(SHAPES, np.cumsum([0, *sizes]).tolist(), strict=False))[name]
    values = flat[begin : begin + int(np.prod(SHAPES[name]))]
    return values if name == "gain" else np.split(values, layout.tp)[int(layout.coordinates(rank)["tp"])]
