"""LAMB: Adam's step, scaled for each parameter in proportion to the parameter's norm.

The trust ratio |x| / |u| of a parameter x and its update u takes the norms of both over all shards and tensor-parallel
parts, so that the result does not depend on where a buffer is cut. As in the authors' code, the ratio is 1 for
parameters without decay, and where either norm is zero.

Source: You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020, algorithm 2.
Left out: bounds on |x| (the paper's phi is the identity here).

Shapes: E elements of a shard; S segments of all the shards of a rank.
"""

from collections.abc import Sequence

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.adamw import Moments
from fabrictune.trainer_probe.optimizers.norms import parameter_norms
from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec


class Lamb:
    """LAMB on the shards of one rank; `step` is a collective of the rank's tp and dp groups."""

    def __init__(self, shards: Sequence[Shard], spec: OptimizerSpec, comm: Comm) -> None:
        self._shards = tuple(shards)
        self._spec = spec
        self._comm = comm
        self.moments = Moments(shards, spec)

    def step(self, learning_rate: float, gradient_factor: torch.Tensor | None = None) -> None:
        """Update the shards' values by their gradients times a factor."""
        self.moments.update(gradient_factor)
        updates = self._updates()
        begin, ratio_S = 0, self._trust_ratios(updates)
        for shard, update_E in zip(self._shards, updates, strict=True):
            for number, piece in shard.pieces():
                update_E[piece] *= ratio_S[begin + number]
            shard.values_E.sub_(update_E, alpha=learning_rate)
            begin += len(shard.segments)

    def _updates(self) -> list[torch.Tensor]:
        """Return each shard's update (E) before scaling: Adam's, and the decay."""
        correction1, correction2 = self.moments.corrections
        updates = []
        for shard, first_E, second_E in zip(self._shards, self.moments.first, self.moments.second, strict=True):
            update_E = (first_E / correction1).div_((second_E / correction2).sqrt_().add_(self._spec.epsilon))
            for piece in shard.decaying_pieces():
                update_E[piece].add_(shard.values_E[piece], alpha=self._spec.weight_decay)
            updates.append(update_E)
        return updates

    def _trust_ratios(self, updates: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the trust ratios (S)."""
        values = [shard.values_E for shard in self._shards]
        value_S, update_S = parameter_norms(self._shards, values, updates, comm=self._comm, tag="optimizer.trust-ratio")
        decays_S = torch.tensor(
            [segment.decays for shard in self._shards for segment in shard.segments], device=value_S.device
        )
        is_set_S = decays_S & (value_S > 0) & (update_S > 0)
        return torch.where(is_set_S, value_S / update_S, 1.0)
