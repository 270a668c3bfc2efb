"""The optimizers there are, and what they have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.adamw import AdamW, Moments
from fabrictune.trainer_probe.optimizers.lamb import Lamb
from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerName, OptimizerSpec


class Optimizer(Protocol):
    """Changes the values of a rank's shards by their gradients; `moments` are all it remembers."""

    moments: Moments

    def step(self, learning_rate: float) -> None:
        """Change the shards' values; every rank of the layout calls this."""


OPTIMIZERS: Mapping[OptimizerName, Callable[[Sequence[Shard], OptimizerSpec, Comm], Optimizer]] = {
    "adamw": lambda shards, spec, comm: AdamW(shards, spec),  # each element for itself
    "lamb": Lamb,
}


def make_optimizer(shards: Sequence[Shard], spec: OptimizerSpec, comm: Comm) -> Optimizer:
    """Return the optimizer that a spec names."""
    return OPTIMIZERS[spec.name](shards, spec, comm)
