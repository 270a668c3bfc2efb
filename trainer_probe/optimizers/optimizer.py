"""The table of optimizers, and their common interface."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.adamw import AdamW, Moments
from fabrictune.trainer_probe.optimizers.lamb import Lamb
from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerName, OptimizerSpec


class Optimizer(Protocol):
    """An optimizer of a rank's shards; `moments` are its whole state."""

    moments: Moments

    def step(self, learning_rate: float, gradient_factor: torch.Tensor | None = None) -> None:
        """Update the shards' values by their gradients times a factor; every rank of the layout calls this."""


OPTIMIZERS: Mapping[OptimizerName, Callable[[Sequence[Shard], OptimizerSpec, Comm], Optimizer]] = {
    "adamw": lambda shards, spec, comm: AdamW(shards, spec),  # element by element, without requests
    "lamb": Lamb,
}


def make_optimizer(shards: Sequence[Shard], spec: OptimizerSpec, comm: Comm) -> Optimizer:
    """Return the optimizer of a spec."""
    return OPTIMIZERS[spec.name](shards, spec, comm)
