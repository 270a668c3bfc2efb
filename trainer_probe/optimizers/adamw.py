"""AdamW: Adam with weight decay apart from the gradient.

Element by element, so that shards need not know of one another. The operations and their order are those of
`torch.optim.AdamW`, so that both give the same bits.

Source: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2.

Shapes: E elements of a shard.
"""

import math
from collections.abc import Sequence

from fabrictune.trainer_probe.optimizers.moments import Moments
from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec


class AdamW:
    """AdamW on the shards of one rank."""

    def __init__(self, shards: Sequence[Shard], spec: OptimizerSpec) -> None:
        self._shards = tuple(shards)
        self._spec = spec
        self.moments = Moments(shards, spec)

    def step(self, learning_rate: float) -> None:
        """Change the shards' values by their gradients."""
        self.moments.update()
        correction1, correction2 = self.moments.corrections
        for shard, first_E, second_E in zip(self._shards, self.moments.first, self.moments.second, strict=True):
            for piece in shard.decaying_pieces():
                shard.values_E[piece].mul_(1 - learning_rate * self._spec.weight_decay)
            denominator_E = (second_E.sqrt() / math.sqrt(correction2)).add_(self._spec.epsilon)
            shard.values_E.addcdiv_(first_E, denominator_E, value=-learning_rate / correction1)
