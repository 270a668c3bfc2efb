"""ZeRO stage 2: every rank has all values, and the gradients and optimizer of its shards.

A backward pass sums the gradients of each block over the group when they are ready (`buckets.py`). Values are gathered
once a step, as in stage 1.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, section
5.2.

Shapes: N elements of a flat buffer, E of a rank's shard of it.
"""

from collections.abc import Mapping

import torch

from fabrictune.trainer_probe.data_parallel.buckets import Bucket, BucketedPasses
from fabrictune.trainer_probe.data_parallel.flat_layout import FlatLayout, block_layouts
from fabrictune.trainer_probe.data_parallel.stage import PendingRequests, Setting, StageWeights
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.parallel.passes import Passes


def make_stage(chunk: ChunkSpec, setting: Setting) -> StageWeights:
    """Return the weights of a stage."""
    buffers = [
        ShardedGradients(layout, setting, chunk.model.seed)
        for layouts in block_layouts(chunk, setting.comm)
        for layout in layouts
    ]
    buckets = [buffer.bucket for buffer in buffers]

    def wrap(passes: Passes) -> Passes:
        return BucketedPasses(passes, buckets, is_overlapped=setting.policy.overlaps("dp"))

    return StageWeights(chunk, buffers, wrap)


class ShardedGradients:
    """A buffer of which each rank has the gradients of its shard, and updates it."""

    def __init__(self, layout: FlatLayout, setting: Setting, seed: int) -> None:
        self._layout, self._comm, self._policy_name = layout, setting.comm, setting.policy.name
        self._pending = PendingRequests(setting.policy)
        self._values_N = torch.empty(layout.padded_size, dtype=setting.dtype, device=setting.device)
        self._own_values_E = self._values_N[layout.own]
        self.weights: Mapping[str, torch.Tensor] = {
            name: values.requires_grad_() for name, values in layout.views(self._values_N).items()
        }
        self.shard = layout.shard(
            self._own_values_E, torch.empty_like(self._own_values_E, dtype=setting.gradient_dtype)
        )
        self.bucket = Bucket(layout, setting, self.weights, self.shard.gradients_E)
        layout.draw_initial_values(self.shard, seed)

    def start_step(self) -> None:
        """Reset the gradients to zero."""
        self.shard.gradients_E.zero_()

    def start_gather(self) -> None:
        """Start to gather the values that other ranks have updated."""
        if self.shard.values_E is not self._own_values_E:
            self._own_values_E.copy_(self.shard.values_E)
        if self._layout.num_ranks > 1:
            self._pending.add(
                self._comm.all_gather(
                    self._values_N,
                    self._own_values_E,
                    axis=self._layout.group,
                    tag=f"{self._layout.name}.values",
                    policy=self._policy_name,
                )
            )

    def complete(self) -> None:
        """Start to gather all values."""
        self.start_gather()

    def start_reduce(self) -> None:
        """Do nothing: passes have summed the gradients."""

    def finish(self) -> None:
        """Wait for all started requests."""
        self._pending.finish()

    def finish_reduce(self) -> None:
        """Do nothing, as above."""
