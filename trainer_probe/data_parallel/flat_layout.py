"""Layout of weights in a flat buffer: one after another, padded to equal shards of the ranks of their gradient group.

A stage has a buffer for each gradient group, or one for each group of each of its blocks (embedding, layers, head), in
order of use. Weights replicated over tensor-parallel ranks go first, so that their gradients are one range; among them
and among the others those with weight decay go first.

Shapes: N elements of a flat buffer, E of a rank's shard of it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from fabrictune.foundation.layout import Axis
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.initialization import write_initial_values
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.optimizers.segments import Segment, Shard
from fabrictune.trainer_probe.parallel.gradient_groups import by_gradient_group


@dataclass(frozen=True, kw_only=True)
class FlatLayout:
    """The places of some weights in a rank's flat buffer, and this rank's part of it."""

    name: str  # unique on its rank
    group: Axis  # of the ranks that divide the buffer
    specs: Sequence[WeightSpec]  # in order of their places
    tp: int
    tp_place: int
    num_ranks: int  # of the group
    place: int  # of this rank in the group

    @classmethod
    def of(cls, weights: Iterable[WeightSpec], comm: Comm, *, group: Axis, name: str) -> "FlatLayout":
        """Return the layout of weights on a rank."""
        members, tp_members = comm.members(group), comm.members("tp")
        return cls(
            name=name,
            group=group,
            specs=sorted(weights, key=lambda weight: (weight.split is not None, not weight.decays)),
            tp=len(tp_members),
            tp_place=tp_members.index(comm.rank),
            num_ranks=len(members),
            place=members.index(comm.rank),
        )

    @property
    def part(self) -> str:
        """The name without that of its stage."""
        return self.name.partition(".")[2]

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The place of each weight."""
        segments, offset = [], 0
        for weight in self.specs:
            size = math.prod(weight.local_shape(self.tp))
            segments.append(
                Segment(
                    name=weight.name,
                    offset=offset,
                    size=size,
                    is_replicated_over_tp=weight.split is None,
                    decays=weight.decays,
                    first=weight.first_element // (1 if weight.split is None else self.tp),
                )
            )
            offset += size
        return tuple(segments)

    @property
    def num_elements(self) -> int:
        """Elements of all weights, without padding."""
        return self.segments[-1].offset + self.segments[-1].size

    @property
    def num_replicated(self) -> int:
        """Elements of weights replicated over tensor-parallel ranks, which go first; zero where there is one rank."""
        return sum(segment.size for segment in self.segments if segment.is_replicated_over_tp) if self.tp > 1 else 0

    @property
    def shard_size(self) -> int:
        """Elements of a shard (E)."""
        return -(-self.num_elements // self.num_ranks)

    @property
    def padded_size(self) -> int:
        """Elements of the buffer (N)."""
        return self.shard_size * self.num_ranks

    @property
    def own(self) -> slice:
        """The place of this rank's shard."""
        return slice(self.place * self.shard_size, (self.place + 1) * self.shard_size)

    def views(self, flat_N: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return each weight's elements in a buffer, in the weight's shape on this rank."""
        return {
            weight.name: flat_N[segment.offset : segment.offset + segment.size].view(weight.local_shape(self.tp))
            for weight, segment in zip(self.specs, self.segments, strict=True)
        }

    def shard(self, values: torch.Tensor, gradients: torch.Tensor, *, is_whole: bool = False) -> Shard:
        """Return this rank's shard, or the whole buffer as one; both tensors have its size.

        In less than single precision the shard's values are a new master copy of `values`.
        """
        of_experts: tuple[Axis, ...] = ("ep",) if self.group == "edp" else ()
        has_master = values.dtype.itemsize < torch.float32.itemsize
        return Shard(
            name=self.name,
            segments=self.segments,
            first=0 if is_whole else self.own.start,
            values_E=torch.empty_like(values, dtype=torch.float32) if has_master else values,
            gradients_E=gradients,
            axes=(*(() if is_whole else (self.group,)), *of_experts),
        )

    def draw_initial_values(self, shard: Shard, seed: int) -> None:
        """Write the initial values of a shard; on the meta device, which has no values, nothing."""
        values_E = shard.values_E
        if values_E.is_meta:
            return
        for number, piece in shard.pieces():
            first = shard.first + piece.start - self.segments[number].offset
            write_initial_values(
                values_E[piece], self.specs[number], seed, tp=self.tp, place=self.tp_place, first=first
            )
        values_E[max(0, self.num_elements - shard.first) :].zero_()  # padding


def stage_layouts(chunk: ChunkSpec, comm: Comm) -> list[FlatLayout]:
    """Return a layout for each gradient group of a stage."""
    return _layouts(chunk.weights(), comm, f"stage{chunk.number}")


def block_layouts(chunk: ChunkSpec, comm: Comm) -> list[list[FlatLayout]]:
    """Return the layouts of each block of a stage."""
    return [_layouts(weights, comm, f"stage{chunk.number}.{name}") for name, weights in chunk.blocks().items()]


def _layouts(weights: Iterable[WeightSpec], comm: Comm, name: str) -> list[FlatLayout]:
    expert_place = comm.members("ep").index(comm.rank) if comm.layout.ep > 1 else 0
    groups = by_gradient_group(weights, comm.layout, expert_place).items()
    return [
        FlatLayout.of(own, comm, group=group, name=name if number == 0 else f"{name}-{group}")
        for number, (group, own) in enumerate(groups)
    ]
