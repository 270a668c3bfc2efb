"""ZeRO stage 1: every rank has all values and gradients, and the optimizer of its shard.

After a stage's last backward pass its gradients are summed over the group, each rank keeping the sums of its shard, in
place; the optimizer changes the shard's values; and before the stage's next first forward pass the shards are gathered.
Overlapped, the sums of one stage are in flight while others compute, and each gather is started when the stage before
it begins. Not overlapped, all stages are gathered one after another at the beginning of the step and summed at its end,
each once, as Megatron-LM's distributed optimizer does.

A rank draws the initial values of its own shard; those of the others come with the first gather, as in every step.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, section
5.1; MegaScale (NSDI'24), section 3.2, "overlapping in data parallelism".
"""

from fabrictune.trainer_probe.data_parallel.flat_layout import FlatLayout, stage_layouts
from fabrictune.trainer_probe.data_parallel.stage import Setting, StageWeights
from fabrictune.trainer_probe.data_parallel.whole_buffer import WholeBuffer
from fabrictune.trainer_probe.model.chunks import ChunkSpec


def make_stage(chunk: ChunkSpec, setting: Setting) -> StageWeights:
    """Return the weights of a stage."""
    return StageWeights(
        chunk, [ShardedOptimizer(layout, setting, chunk.model.seed) for layout in stage_layouts(chunk, setting.comm)]
    )


class ShardedOptimizer(WholeBuffer):
    """A buffer of which each rank updates its shard."""

    def __init__(self, layout: FlatLayout, setting: Setting, seed: int) -> None:
        super().__init__(layout, setting)
        self._own_values_E = self.values_N[layout.own]
        self.shard = layout.shard(self._own_values_E, self.gradients_N[layout.own])
        layout.draw_initial_values(self.shard, seed)

    def start_gather(self) -> None:
        """Start to gather the values that other ranks have updated."""
        if self.shard.values_E is not self._own_values_E:
            self._own_values_E.copy_(self.shard.values_E)
        if self.layout.num_ranks > 1:
            self.pending.add(
                self.comm.all_gather(
                    self.values_N,
                    self._own_values_E,
                    axis=self.layout.group,
                    tag=f"{self.layout.name}.values",
                    policy=self.policy_name,
                )
            )

    def complete(self) -> None:
        """Start to gather all values."""
        self.start_gather()

    def start_reduce(self) -> None:
        """Start to sum the gradients; those of weights replicated over tp first over that group."""
        self.sum_replicated()
        if self.layout.num_ranks > 1:
            self.pending.add(
                self.comm.reduce_scatter(
                    self.shard.gradients_E,
                    self.gradients_N,
                    axis=self.layout.group,
                    tag=f"{self.layout.name}.gradients",
                    policy=self.policy_name,
                )
            )
