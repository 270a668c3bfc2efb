"""A buffer of which each rank has all values and all gradients; weights and their gradients are views.

The gradients of a step's micro-batches add up in place, in the precision that the recipe gives them; after the last
backward pass of the stage they are summed over ranks.

Shapes: N elements of a flat buffer.
"""

from collections.abc import Mapping

import torch

from fabrictune.trainer_probe.data_parallel.flat_layout import FlatLayout
from fabrictune.trainer_probe.data_parallel.stage import PendingRequests, Setting
from fabrictune.trainer_probe.parallel.gradient_places import attach_gradient


class WholeBuffer:
    """Values and gradients of some weights, and the requests that concern them."""

    def __init__(self, layout: FlatLayout, setting: Setting) -> None:
        self.layout = layout
        self.comm = setting.comm
        self.policy_name = setting.policy.name
        self.pending = PendingRequests(setting.policy)
        self.values_N = torch.empty(layout.padded_size, dtype=setting.dtype, device=setting.device)
        self.gradients_N = torch.empty_like(self.values_N, dtype=setting.gradient_dtype)  # set to zero by each step
        if setting.spec.gradient_accumulation_fusion:
            attach_gradient(self.values_N, self.gradients_N)
        self.weights: Mapping[str, torch.Tensor] = layout.views(self.values_N)
        for name, gradient in layout.views(self.gradients_N).items():
            attach_gradient(self.weights[name].requires_grad_(), gradient)

    def start_step(self) -> None:
        """Reset the gradients to zero."""
        self.gradients_N.zero_()

    def sum_replicated(self) -> None:
        """Sum the gradients of weights replicated over tensor-parallel ranks over those."""
        if self.layout.num_replicated:
            self.comm.all_reduce(
                self.gradients_N[: self.layout.num_replicated],
                axis="tp",
                tag=f"{self.layout.name}.replicated-gradients",
                policy=self.policy_name,
            ).wait()

    def finish(self) -> None:
        """Wait for all started requests."""
        self.pending.finish()

    def finish_reduce(self) -> None:
        """Wait for the sums of the shard's gradients."""
        self.pending.finish()
