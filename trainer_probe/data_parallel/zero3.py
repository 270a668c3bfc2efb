"""ZeRO stage 3: every rank has the values, gradients and optimizer of its shards only.

The values of a block are gathered before its forward pass and again before its backward pass, and freed after each
(`gathered_passes.py`); its gradients are summed when they are ready, as in stage 2.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, section
5.3.

Shapes: N elements of a flat buffer, E of a rank's shard of it.
"""

from collections.abc import Mapping

import torch

from fabrictune.trainer_probe.data_parallel.buckets import Bucket, BucketedPasses
from fabrictune.trainer_probe.data_parallel.flat_layout import FlatLayout, block_layouts
from fabrictune.trainer_probe.data_parallel.gathered_passes import BlockTurns, GatheredPasses, GatheredWeights
from fabrictune.trainer_probe.data_parallel.stage import PendingRequests, Setting, StageWeights
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.parallel.passes import Passes


def make_stage(chunk: ChunkSpec, setting: Setting) -> StageWeights:
    """Return the weights of a stage."""
    is_overlapped = setting.policy.overlaps("dp")
    blocks = [
        [ShardedValues(layout, setting, chunk.model.seed) for layout in layouts]
        for layouts in block_layouts(chunk, setting.comm)
    ]
    buffers = [buffer for block in blocks for buffer in block]
    turns = BlockTurns(blocks, is_overlapped=is_overlapped)

    def wrap(passes: Passes) -> Passes:
        buckets = [buffer.bucket for buffer in buffers]
        return GatheredPasses(BucketedPasses(passes, buckets, is_overlapped=is_overlapped), turns)

    return StageWeights(chunk, buffers, wrap, GatheredWeights(blocks, turns))


class ShardedValues:
    """A buffer of which each rank has its shard, and for a while the values of all."""

    def __init__(self, layout: FlatLayout, setting: Setting, seed: int) -> None:
        self._layout, self._comm, self._policy_name = layout, setting.comm, setting.policy.name
        self._pending = PendingRequests(setting.policy)
        self._own_values_E = torch.empty(layout.shard_size, dtype=setting.dtype, device=setting.device)
        self.shard = layout.shard(
            self._own_values_E, torch.empty_like(self._own_values_E, dtype=setting.gradient_dtype)
        )
        layout.draw_initial_values(self.shard, seed)
        self._values_N = self._own_values_E.new_empty(layout.padded_size)
        self._storage = self._values_N.untyped_storage()
        self._num_bytes = self._storage.nbytes()
        self.weights: Mapping[str, torch.Tensor] = {  # without a common count of changes: to gather again is none
            name: values.data.requires_grad_() for name, values in layout.views(self._values_N).items()
        }
        self.bucket = Bucket(layout, setting, self.weights, self.shard.gradients_E)
        self.release()

    def start_step(self) -> None:
        """Reset the gradients to zero."""
        self.shard.gradients_E.zero_()
        self.release()

    def start_gather(self) -> None:
        """Round the updated values to the model's precision; passes gather them."""
        if self.shard.values_E is not self._own_values_E:
            self._own_values_E.copy_(self.shard.values_E)

    def gather(self, tag: str) -> None:
        """Start to gather the values, by a request of the name `tag` and the block's."""
        self._gather(f"{tag}.{self._layout.part}.values")

    def complete(self) -> None:
        """Start to gather the values, and keep them until the next step."""
        self.start_gather()
        self._gather(f"{self._layout.name}.values")

    def release(self) -> None:
        """Free the memory of the values."""
        self._storage.resize_(0)

    def start_reduce(self) -> None:
        """Do nothing: passes have summed the gradients."""

    def finish(self) -> None:
        """Wait for all started requests."""
        self._pending.finish()

    def finish_reduce(self) -> None:
        """Do nothing, as above."""

    def _gather(self, tag: str) -> None:
        self._storage.resize_(self._num_bytes)
        if self._layout.num_ranks == 1:
            self._values_N.copy_(self._own_values_E)
            return
        self._pending.add(
            self._comm.all_gather(
                self._values_N, self._own_values_E, axis=self._layout.group, tag=tag, policy=self._policy_name
            )
        )
