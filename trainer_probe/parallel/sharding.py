"""Data parallelism with sharded gradients and optimizer (ZeRO stage 2), stage by stage.

Each of a rank's stages has one flat buffer of values and one of gradients, of which its weights are views. After the
stage's last backward pass its gradients are summed over the data-parallel group, each rank keeping a part; the
optimizer changes that part of the values; and before the stage's next first forward pass the parts are gathered.
Overlapped, the sums of one stage are in flight while others compute, and each gather is started when the stage before
it begins, the first at the beginning of the step: in order of use. Not overlapped, all stages are gathered one after
another at the beginning of the step and summed at its end, each once, as Megatron-LM's distributed optimizer does.

A rank draws the initial values of its own part only; those of the others come with the first gather, as in every step.

A model in half precision has a master copy of its shards' values in single precision, which the optimizer updates.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, section 5;
MegaScale (NSDI'24), section 3.2, "overlapping in data parallelism".
Left out: summing the micro-batches' gradients in a higher precision than the model's.

Shapes: N elements of a flat buffer, E of a rank's shard of it.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from fabrictune.foundation.layout import Axis
from fabrictune.trainer_probe.comm import Comm, Handle
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.initialization import write_initial_values
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.optimizers.segments import Segment, Shard
from fabrictune.trainer_probe.parallel.gradient_groups import by_gradient_group
from fabrictune.trainer_probe.policies import OverlapPolicy


class ShardedStage:
    """The weights of one stage: those of each gradient group in a flat buffer, divided over the group."""

    def __init__(
        self, chunk: ChunkSpec, comm: Comm, policy: OverlapPolicy, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.chunk = chunk
        name, seed = f"stage{chunk.number}", chunk.model.seed
        self._buffers = [
            ShardedWeights(
                weights, comm, policy, dtype, device, group=group, name=name if number == 0 else f"{name}.{group}"
            )
            for number, (group, weights) in enumerate(by_gradient_group(chunk.weights()).items())
        ]
        for buffer in self._buffers:
            buffer.draw_initial_values(seed)
        self.weights: Mapping[str, torch.Tensor] = {
            name: values for buffer in self._buffers for name, values in buffer.weights.items()
        }

    @property
    def shards(self) -> tuple[Shard, ...]:
        """This rank's part of each buffer."""
        return tuple(buffer.shard for buffer in self._buffers)

    def start_step(self) -> None:
        """Reset the gradients to zero."""
        for buffer in self._buffers:
            buffer.start_step()

    def start_gather(self) -> None:
        """Start to gather the values that other ranks have updated."""
        for buffer in self._buffers:
            buffer.start_gather()

    def start_reduce(self) -> None:
        """Start to sum the gradients."""
        for buffer in self._buffers:
            buffer.start_reduce()

    def finish(self) -> None:
        """Wait for all started requests."""
        for buffer in self._buffers:
            buffer.finish()

    def finish_reduce(self) -> None:
        """Wait for the sums of the shards' gradients."""
        for buffer in self._buffers:
            buffer.finish_reduce()


class ShardedWeights:
    """Weights of one gradient group, with this rank's share of gradients and updates."""

    def __init__(
        self,
        weights: Sequence[WeightSpec],
        comm: Comm,
        policy: OverlapPolicy,
        dtype: torch.dtype,
        device: torch.device,
        *,
        group: Axis,
        name: str,
    ) -> None:
        self.name = name
        self._group: Axis = group
        self._comm = comm
        self._policy = policy
        self._pending: list[Handle] = []
        layout, members = comm.layout, comm.members(group)
        self._num_ranks = len(members)
        self._specs = sorted(weights, key=lambda weight: weight.split is not None)  # those replicated over tp go first
        self._segments = tuple(_segments(self._specs, layout.tp))
        self._num_replicated = sum(segment.size for segment in self._segments if segment.is_replicated_over_tp)
        self._num_elements = self._segments[-1].offset + self._segments[-1].size
        shard_size = -(-self._num_elements // self._num_ranks)
        self._values_N = torch.empty(shard_size * self._num_ranks, dtype=dtype, device=device)
        self._gradients_N = torch.empty_like(self._values_N)  # set to zero by each step
        self.weights: Mapping[str, torch.Tensor] = {
            weight.name: self._view(weight, segment)
            for weight, segment in zip(self._specs, self._segments, strict=True)
        }
        first = members.index(comm.rank) * shard_size
        self._own_values_E = self._values_N[first : first + shard_size]
        self._own_gradients_E = torch.empty_like(self._own_values_E) if self._num_ranks > 1 else self._gradients_N
        self._has_master = dtype.itemsize < torch.float32.itemsize
        self.shard = Shard(
            name=self.name,
            segments=self._segments,
            first=first,
            group=group,
            values_E=_master_of(self._own_values_E) if self._has_master else self._own_values_E,
            gradients_E=_master_of(self._own_gradients_E) if self._has_master else self._own_gradients_E,
        )

    def draw_initial_values(self, seed: int) -> None:
        """Write the initial values of this rank's shard; `start_gather` brings those of the others.

        On the meta device, which has shapes and no values, nothing is written.
        """
        if self._values_N.is_meta:
            return
        values_E = self.shard.values_E
        tp, place = self._comm.layout.tp, self._comm.members("tp").index(self._comm.rank)
        for number, piece in self.shard.pieces():
            first = self.shard.first + piece.start - self._segments[number].offset
            write_initial_values(values_E[piece], self._specs[number], seed, tp=tp, place=place, first=first)
        values_E[max(0, self._num_elements - self.shard.first) :].zero_()  # padding
        if self._has_master:
            self._own_values_E.copy_(values_E)

    def start_step(self) -> None:
        """Reset the gradients to zero."""
        self._gradients_N.zero_()

    def start_gather(self) -> None:
        """Start to gather the values that other ranks have updated."""
        if self._has_master:
            self._own_values_E.copy_(self.shard.values_E)
        if self._num_ranks > 1:
            self._start(
                self._comm.all_gather(
                    self._values_N,
                    self._own_values_E,
                    axis=self._group,
                    tag=f"{self.name}.values",
                    policy=self._policy.name,
                )
            )

    def start_reduce(self) -> None:
        """Start to sum the gradients; those of weights replicated over tp first over that group."""
        if self._comm.layout.tp > 1 and self._num_replicated:
            self._comm.all_reduce(
                self._gradients_N[: self._num_replicated],
                axis="tp",
                tag=f"{self.name}.replicated-gradients",
                policy=self._policy.name,
            ).wait()
        if self._num_ranks > 1:
            self._start(
                self._comm.reduce_scatter(
                    self._own_gradients_E,
                    self._gradients_N,
                    axis=self._group,
                    tag=f"{self.name}.gradients",
                    policy=self._policy.name,
                )
            )

    def finish(self) -> None:
        """Wait for all started requests."""
        for handle in self._pending:
            handle.wait()
        self._pending.clear()

    def finish_reduce(self) -> None:
        """Wait for the sum of the shard's gradients."""
        self.finish()
        if self._has_master:
            self.shard.gradients_E.copy_(self._own_gradients_E)

    def _start(self, handle: Handle) -> None:
        self._pending.append(handle)
        if not self._policy.overlaps("dp"):
            self.finish()

    def _view(self, weight: WeightSpec, segment: Segment) -> torch.Tensor:
        """Return a weight as a view of the flat buffer; its gradient is a view too."""
        elements = slice(segment.offset, segment.offset + segment.size)
        values = self._values_N[elements].view(weight.local_shape(self._comm.layout.tp))
        values.requires_grad_()
        values.grad = self._gradients_N[elements].view(values.shape)
        return values


class GatheringOrder:
    """The stages of a rank in order of first use: when each is gathered, and when its gradients are summed."""

    def __init__(self, stages: Mapping[int, ShardedStage], policy: OverlapPolicy) -> None:
        self._stages = stages
        self._after = dict(pairwise(stages))
        self._is_overlapped = policy.overlaps("dp")

    def start_step(self) -> None:
        """Reset the gradients, and start to gather the first stage's values; gather all where nothing overlaps."""
        for stage in self._stages.values():
            stage.start_step()
        first, *others = self._stages.values()
        for stage in (first,) if self._is_overlapped else (first, *others):
            stage.start_gather()

    def before_first_forward(self, number: int) -> None:
        """Wait for a stage's values; those of the next stage are then in flight."""
        self._stages[number].finish()
        if self._is_overlapped and number in self._after:
            self._stages[self._after[number]].start_gather()

    def after_last_backward(self, number: int) -> None:
        """Start to sum a stage's gradients, where that overlaps with other stages."""
        if self._is_overlapped:
            self._stages[number].start_reduce()

    def finish_step(self) -> None:
        """Wait for all sums, after making them where nothing overlaps."""
        for stage in self._stages.values():
            if not self._is_overlapped:
                stage.start_reduce()
            stage.finish_reduce()


def _master_of(tensor_E: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor_E, dtype=torch.float32)


def _segments(weights: list[WeightSpec], tp: int) -> list[Segment]:
    """Return the place of each weight in a flat buffer, one after another."""
    segments, offset = [], 0
    for weight in weights:
        size = math.prod(weight.local_shape(tp))
        segments.append(
            Segment(
                name=weight.name,
                offset=offset,
                size=size,
                is_replicated_over_tp=weight.split is None,
                decays=weight.decays,
            )
        )
        offset += size
    return segments
