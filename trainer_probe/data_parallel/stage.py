"""The weights of one stage of a pipeline, in flat buffers, and the interface of a buffer that a strategy implements.

In a step a stage's buffers are reset, their values gathered before its first pass, its passes run, and their gradients
summed after its last pass. A strategy that acts within passes too, wraps them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from fabrictune.trainer_probe.comm import Comm, Handle
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.weights import Weights
from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.policies import OverlapPolicy


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all buffers of a rank have in common."""

    comm: Comm
    policy: OverlapPolicy
    dtype: torch.dtype  # of values
    device: torch.device
    spec: DataParallelSpec = field(default_factory=DataParallelSpec)

    @property
    def gradient_dtype(self) -> torch.dtype:
        """The precision in which gradients are added and summed."""
        is_models = self.spec.gradient_precision == "model"
        return self.dtype if is_models else torch.promote_types(self.dtype, torch.float32)


class Buffer(Protocol):
    """Weights of one gradient group, whose gradients and updates its ranks share as a strategy says."""

    weights: Mapping[str, torch.Tensor]
    shard: Shard  # the part that this rank updates

    def start_step(self) -> None:
        """Reset the gradients."""

    def start_gather(self) -> None:
        """Start to bring updated values to where passes find them."""

    def start_reduce(self) -> None:
        """Start to sum the gradients, those that passes have not summed."""

    def finish(self) -> None:
        """Wait for all started requests."""

    def finish_reduce(self) -> None:
        """Wait for the sums of the shard's gradients."""

    def complete(self) -> None:
        """Start to gather all values, and keep them."""


class StageWeights:
    """The buffers of a stage, and its passes."""

    def __init__(
        self,
        chunk: ChunkSpec,
        buffers: Sequence[Buffer],
        wrap: Callable[[Passes], Passes] = lambda passes: passes,
        weights: Weights | None = None,
    ) -> None:
        self.chunk = chunk
        self.wrap = wrap
        self.weights = weights or {name: values for buffer in buffers for name, values in buffer.weights.items()}
        self._buffers = buffers

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The parts of the buffers that this rank updates."""
        return tuple(buffer.shard for buffer in self._buffers)

    def start_step(self) -> None:
        """Reset the gradients."""
        for buffer in self._buffers:
            buffer.start_step()

    def start_gather(self) -> None:
        """Start to bring updated values to where passes find them."""
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

    def complete(self) -> None:
        """Gather all values, and keep them."""
        for buffer in self._buffers:
            buffer.complete()
        self.finish()


class PendingRequests:
    """Requests of a buffer that are under way; without overlap each is waited for where it is made."""

    def __init__(self, policy: OverlapPolicy) -> None:
        self._is_overlapped = policy.overlaps("dp")
        self._handles: list[Handle] = []

    def add(self, handle: Handle) -> None:
        """Add a request."""
        self._handles.append(handle)
        if not self._is_overlapped:
            self.finish()

    def finish(self) -> None:
        """Wait for all of them."""
        for handle in self._handles:
            handle.wait()
        self._handles.clear()
