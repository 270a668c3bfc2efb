"""DDP: every rank has the whole model and its optimizer; gradients are summed over all of them.

All ranks make the same update of the same values, so that values need no request.

Source: Li et al., "PyTorch distributed: experiences on accelerating data parallel training", VLDB 2020.
Left out: buckets smaller than a stage; gradients are summed beside the passes of a rank's other stages.
"""

from fabrictune.trainer_probe.data_parallel.flat_layout import FlatLayout, stage_layouts
from fabrictune.trainer_probe.data_parallel.stage import Setting, StageWeights
from fabrictune.trainer_probe.data_parallel.whole_buffer import WholeBuffer
from fabrictune.trainer_probe.model.chunks import ChunkSpec


def make_stage(chunk: ChunkSpec, setting: Setting) -> StageWeights:
    """Return the weights of a stage."""
    return StageWeights(
        chunk, [ReplicatedBuffer(layout, setting, chunk.model.seed) for layout in stage_layouts(chunk, setting.comm)]
    )


class ReplicatedBuffer(WholeBuffer):
    """A buffer that each rank updates whole."""

    def __init__(self, layout: FlatLayout, setting: Setting, seed: int) -> None:
        super().__init__(layout, setting)
        self.shard = layout.shard(self.values_N, self.gradients_N, is_whole=True)
        layout.draw_initial_values(self.shard, seed)

    def start_gather(self) -> None:
        """Round the updated values to the model's precision."""
        if self.shard.values_E is not self.values_N:
            self.values_N.copy_(self.shard.values_E)

    def complete(self) -> None:
        """Round the updated values to the model's precision."""
        self.start_gather()

    def start_reduce(self) -> None:
        """Start to sum the gradients; those of weights replicated over tp first over that group."""
        self.sum_replicated()
        if self.layout.num_ranks > 1:
            self.pending.add(
                self.comm.all_reduce(
                    self.gradients_N,
                    axis=self.layout.group,
                    tag=f"{self.layout.name}.gradients",
                    policy=self.policy_name,
                )
            )
