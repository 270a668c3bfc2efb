"""AdamW: Adam with weight decay apart from the gradient; and the moments, which LAMB uses too.

Element by element, so that no shard depends on another. The operations and their order are those of
`torch.optim.AdamW`, so that both give the same bits.

Source: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1; Loshchilov and Hutter,
"Decoupled weight decay regularization", ICLR 2019, algorithm 2.

Shapes: E elements of a shard.
"""

import math
from collections.abc import Mapping, Sequence

import torch

from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec


class Moments:
    """Running means of the gradients of a rank's shards and of their squares."""

    def __init__(self, shards: Sequence[Shard], spec: OptimizerSpec) -> None:
        self._shards = tuple(shards)
        self._spec = spec
        self._num_steps = 0
        self.first = [torch.zeros_like(shard.values_E) for shard in self._shards]  # each E, like those of `second`
        self.second = [torch.zeros_like(shard.values_E) for shard in self._shards]

    @property
    def corrections(self) -> tuple[float, float]:
        """Bias corrections of both moments, which begin at zero."""
        return 1 - self._spec.beta1**self._num_steps, 1 - self._spec.beta2**self._num_steps

    def update(self, gradient_factor: torch.Tensor | None = None) -> None:
        """Update the moments with one step's gradients, times a factor."""
        self._num_steps += 1
        for shard, first_E, second_E in zip(self._shards, self.first, self.second, strict=True):
            gradients_E = shard.gradients_E.to(shard.values_E.dtype)
            if gradient_factor is not None:
                gradients_E = gradients_E * gradient_factor
            first_E.lerp_(gradients_E, 1 - self._spec.beta1)
            second_E.mul_(self._spec.beta2).addcmul_(gradients_E, gradients_E, value=1 - self._spec.beta2)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the state for a checkpoint: the tensors themselves, not copies."""
        state = {"num_steps": torch.tensor(self._num_steps)}
        for shard, first_E, second_E in zip(self._shards, self.first, self.second, strict=True):
            state |= {f"{shard.name}.first_moment": first_E, f"{shard.name}.second_moment": second_E}
        return state

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Restore a state of shards with the same names and sizes."""
        self._num_steps = int(state["num_steps"])
        for shard, first_E, second_E in zip(self._shards, self.first, self.second, strict=True):
            first_E.copy_(state[f"{shard.name}.first_moment"])
            second_E.copy_(state[f"{shard.name}.second_moment"])


class AdamW:
    """AdamW on the shards of one rank."""

    def __init__(self, shards: Sequence[Shard], spec: OptimizerSpec) -> None:
        self._shards = tuple(shards)
        self._spec = spec
        self.moments = Moments(shards, spec)

    def step(self, learning_rate: float, gradient_factor: torch.Tensor | None = None) -> None:
        """Update the shards' values by their gradients times a factor."""
        self.moments.update(gradient_factor)
        correction1, correction2 = self.moments.corrections
        for shard, first_E, second_E in zip(self._shards, self.moments.first, self.moments.second, strict=True):
            for piece in shard.decaying_pieces():
                shard.values_E[piece].mul_(1 - learning_rate * self._spec.weight_decay)
            denominator_E = (second_E.sqrt() / math.sqrt(correction2)).add_(self._spec.epsilon)
            shard.values_E.addcdiv_(first_E, denominator_E, value=-learning_rate / correction1)
