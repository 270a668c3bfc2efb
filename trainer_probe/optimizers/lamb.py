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
from fabrictune.trainer_probe.optimizers.adamw import Moments, blocks_of
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
        decays = [segment.decays for shard in self._shards for segment in shard.segments]
        self._decays_S = torch.tensor(decays, device=self._shards[0].values_E.device)  # once: a GPU waits for a copy

    def step(self, learning_rate: float, gradient_factor: torch.Tensor | None = None) -> None:
        """Update the shards' values by their gradients times a factor."""
        self.moments.advance()
        updates = [self._update(number, gradient_factor) for number in range(len(self._shards))]
        begin, ratio_S = 0, self._trust_ratios(updates)
        for shard, update_E in zip(self._shards, updates, strict=True):
            for number, piece in shard.pieces():
                update_E[piece] *= ratio_S[begin + number]
            shard.values_E.sub_(update_E, alpha=learning_rate)
            begin += len(shard.segments)

    def _update(self, number: int, gradient_factor: torch.Tensor | None) -> torch.Tensor:
        """Return a shard's update (E) before scaling: Adam's, and the decay."""
        shard, (correction1, correction2) = self._shards[number], self.moments.corrections
        update_E = torch.empty_like(shard.values_E)
        for block in blocks_of(shard):
            first_E, second_E = self.moments.add(number, block, gradient_factor)
            denominator_E = (second_E / correction2).sqrt_().add_(self._spec.epsilon)
            torch.div(first_E, correction1, out=update_E[block]).div_(denominator_E)
            for run, decays in shard.runs(block):
                if decays:
                    update_E[run].add_(shard.values_E[run], alpha=self._spec.weight_decay)
        return update_E

    def _trust_ratios(self, updates: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the trust ratios (S)."""
        values = [shard.values_E for shard in self._shards]
        value_S, update_S = parameter_norms(self._shards, values, updates, comm=self._comm, tag="optimizer.trust-ratio")
        is_set_S = self._decays_S & (value_S > 0) & (update_S > 0)
        return torch.where(is_set_S, value_S / update_S, 1.0)
