"""Closed forms of data-parallel strategies: what each divides over a gradient group, its memory and its volumes.

A buffer of N elements, padded to equal shards, is that of a gradient group of a stage, or of a block of it (embedding,
layer, head) where gradients are divided: those are summed block by block in every micro-batch. ZeRO-3 gathers a block's
values for its forward and its backward pass; the embedding's values are not needed in the latter.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, figure 1.
Left out: copies of a collective that its library makes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.layout import Axis
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec, StrategyName
from fabrictune.trainer_probe.model.chunks import EMBEDDING, ChunkSpec
from fabrictune.trainer_probe.model.sublayers import SINGLE_BYTES, Volumes
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.gradient_groups import by_gradient_group
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of

_MOMENTS = 2


@dataclass(frozen=True, kw_only=True)
class Division:
    """What the ranks of a gradient group divide; of the rest each has all."""

    optimizer: bool = False
    gradients: bool = False
    values: bool = False


DIVISIONS: Mapping[StrategyName, Division] = {
    "ddp": Division(),
    "zero1": Division(optimizer=True),
    "zero2": Division(optimizer=True, gradients=True),
    "zero3": Division(optimizer=True, gradients=True, values=True),
}


@dataclass(frozen=True, kw_only=True)
class StateBytes:
    """Bytes of a stage's state on a rank, and of what a pass has besides for a while."""

    weights: int
    gradients: int
    optimizer: int  # moments, and in less than single precision a master copy
    gathered: int  # values of blocks in use, where values are divided
    collected: int  # gradients of blocks until they are summed, where gradients are divided


@dataclass(frozen=True, kw_only=True)
class _Buffer:
    """The elements of a flat buffer on a rank."""

    block: str
    group: Axis
    num_ranks: int
    shard_size: int
    num_replicated: int  # over tensor-parallel ranks

    @property
    def padded_size(self) -> int:
        return self.shard_size * self.num_ranks


def check_strategy(spec: DataParallelSpec, degrees: Degrees) -> Iterable[Mistake]:
    """Yield a mistake where gradients are divided and the schedule splits backward passes."""
    shape = degrees.pipeline
    if DIVISIONS[spec.strategy].gradients and schedule_of(shape).splits_backward:
        yield Mistake(
            where="data_parallel.strategy",
            found=f"{spec.strategy} with the schedule {shape.schedule_name}, which splits the backward passes that "
            "gradients are summed in",
            allowed="ddp or zero1 with this schedule",
            next_step="choose another strategy or another degrees.schedule",
        )


def data_volumes(chunk: ChunkSpec, degrees: Degrees, spec: DataParallelSpec, element_bytes: int) -> Volumes:
    """Return the bytes in a step of a stage's gradients and values on a rank.

    Those of weights replicated over tensor-parallel ranks, whose gradients are summed over these first, among them.
    """
    division, volumes = DIVISIONS[spec.strategy], Volumes()
    gradient_bytes = _gradient_bytes(spec, element_bytes)
    num_reduces = degrees.num_batches if division.gradients else 1
    for buffer in _buffers(chunk, degrees, spec):
        volumes["tp", Operation.ALL_REDUCE] += num_reduces * buffer.num_replicated * gradient_bytes
        if buffer.num_ranks > 1:
            reduce = Operation.REDUCE_SCATTER if division.optimizer else Operation.ALL_REDUCE
            num_gathers = _num_gathers(buffer, degrees, division)
            volumes[buffer.group, reduce] += num_reduces * buffer.padded_size * gradient_bytes
            volumes[buffer.group, Operation.ALL_GATHER] += num_gathers * buffer.padded_size * element_bytes
    return +volumes


def state_bytes(
    chunk: ChunkSpec, degrees: Degrees, spec: DataParallelSpec, element_bytes: int, *, is_overlapped: bool
) -> StateBytes:
    """Return the memory of a stage's state on a rank."""
    gradient_bytes = _gradient_bytes(spec, element_bytes)
    division, master_bytes = DIVISIONS[spec.strategy], max(element_bytes, SINGLE_BYTES)
    of_optimizer = _MOMENTS * master_bytes + (master_bytes if master_bytes > element_bytes else 0)
    weights = gradients = optimizer = 0
    buffers = _buffers(chunk, degrees, spec)
    for buffer in buffers:
        weights += _part(buffer, is_divided=division.values) * element_bytes
        gradients += _part(buffer, is_divided=division.gradients) * gradient_bytes
        optimizer += _part(buffer, is_divided=division.optimizer) * of_optimizer
    in_use = _most_in_use(buffers, is_overlapped=is_overlapped)
    return StateBytes(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        gathered=in_use * element_bytes if division.values else 0,
        collected=in_use * gradient_bytes if division.gradients else 0,
    )


def _gradient_bytes(spec: DataParallelSpec, element_bytes: int) -> int:
    return element_bytes if spec.gradient_precision == "model" else max(element_bytes, SINGLE_BYTES)


def _buffers(chunk: ChunkSpec, degrees: Degrees, spec: DataParallelSpec) -> list[_Buffer]:
    """Return the buffers of a stage, in order of use."""
    blocks = chunk.blocks() if DIVISIONS[spec.strategy].gradients else {"": chunk.weights()}
    return [
        _buffer(block, group, own, degrees)
        for block, weights in blocks.items()
        for group, own in by_gradient_group(weights, degrees.layout).items()
    ]


def _buffer(block: str, group: Axis, weights: Sequence[WeightSpec], degrees: Degrees) -> _Buffer:
    tp, num_ranks = degrees.layout.tp, degrees.layout.degree(group)
    replicated = sum(math.prod(weight.shape) for weight in weights if weight.split is None)
    held = sum(math.prod(weight.local_shape(tp)) for weight in weights)
    return _Buffer(
        block=block,
        group=group,
        num_ranks=num_ranks,
        shard_size=-(-held // num_ranks),
        num_replicated=replicated if tp > 1 else 0,
    )


def _num_gathers(buffer: _Buffer, degrees: Degrees, division: Division) -> int:
    if division.values:
        return degrees.num_batches * (1 if buffer.block == EMBEDDING else 2)
    return 1 if division.optimizer else 0


def _part(buffer: _Buffer, *, is_divided: bool) -> int:
    return buffer.shard_size if is_divided else buffer.padded_size


def _most_in_use(buffers: Sequence[_Buffer], *, is_overlapped: bool) -> int:
    """Return the elements of the largest block, with a neighbour's where that is on its way."""
    size_by_block = Counter[str]()
    for buffer in buffers:
        size_by_block[buffer.block] += buffer.padded_size
    sizes = list(size_by_block.values())
    pairs = [before + after for before, after in pairwise(sizes)] if is_overlapped else []
    return max([*sizes, *pairs])
