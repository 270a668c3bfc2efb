"""AdamW: Adam with weight decay apart from the gradient; and the moments, which LAMB uses too.

Element by element, so that no shard depends on another. The operations and their order are those of
`torch.optim.AdamW`, so that both give the same bits. A shard is updated in blocks, whose temporaries stay in a
processor's cache and whose ends fall on vectors' ends, so that no bit depends on them; a GPU runs torch's fused kernel
on larger blocks instead, which rounds otherwise in the last bits.

Source: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1; Loshchilov and Hutter,
"Decoupled weight decay regularization", ICLR 2019, algorithm 2.

Shapes: E elements of a shard, or of a block of it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch.optim.adamw import adamw

from fabrictune.trainer_probe.optimizers.segments import Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec

BLOCK = 2**16  # elements of a shard that a CPU updates at a time
GPU_BLOCK = 2**26


class Moments:
    """Running means of the gradients of a rank's shards and of their squares."""

    def __init__(self, shards: Sequence[Shard], spec: OptimizerSpec) -> None:
        self._shards = tuple(shards)
        self._spec = spec
        self._num_steps = 0
        self.first = [torch.zeros_like(shard.values_E) for shard in self._shards]  # each E, like those of `second`
        self.second = [torch.zeros_like(shard.values_E) for shard in self._shards]

    @property
    def num_steps(self) -> int:
        """Steps so far."""
        return self._num_steps

    @property
    def corrections(self) -> tuple[float, float]:
        """Bias corrections of both moments, which begin at zero."""
        return 1 - self._spec.beta1**self._num_steps, 1 - self._spec.beta2**self._num_steps

    def advance(self) -> None:
        """Count a step; its gradients are then added block by block."""
        self._num_steps += 1

    def add(self, number: int, block: slice, gradient_factor: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Update the moments of a block of shard `number` with its gradients times a factor; returns them (each E)."""
        first_E, second_E = self.first[number][block], self.second[number][block]
        gradients_E = gradients_of(self._shards[number], block, gradient_factor)
        first_E.lerp_(gradients_E, 1 - self._spec.beta1)
        second_E.mul_(self._spec.beta2).addcmul_(gradients_E, gradients_E, value=1 - self._spec.beta2)
        return first_E, second_E

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


def gradients_of(shard: Shard, block: slice, factor: torch.Tensor | None) -> torch.Tensor:
    """Return a block's gradients in the precision of its values, times a factor."""
    gradients_E = shard.gradients_E[block].to(shard.values_E.dtype)
    return gradients_E if factor is None else gradients_E * factor


def blocks_of(shard: Shard) -> Iterator[slice]:
    """Yield the blocks of a shard, one after another."""
    size = GPU_BLOCK if is_on_gpu(shard) else BLOCK
    for start in range(0, len(shard.values_E), size):
        yield slice(start, min(start + size, len(shard.values_E)))


def is_on_gpu(shard: Shard) -> bool:
    """Return whether a shard is on a GPU, or on the meta device that stands for one."""
    return shard.values_E.is_cuda or shard.values_E.is_meta


class AdamW:
    """AdamW on the shards of one rank."""

    def __init__(self, shards: Sequence[Shard], spec: OptimizerSpec) -> None:
        self._shards = tuple(shards)
        self._spec = spec
        self.moments = Moments(shards, spec)

    def step(self, learning_rate: float, gradient_factor: torch.Tensor | None = None) -> None:
        """Update the shards' values by their gradients times a factor."""
        self.moments.advance()
        for number, shard in enumerate(self._shards):
            if is_on_gpu(shard):
                self.update_fused(number, learning_rate, gradient_factor)
            else:
                self._update(number, learning_rate, gradient_factor)

    def update_fused(self, number: int, learning_rate: float, gradient_factor: torch.Tensor | None) -> None:
        """Update a shard by torch's fused kernel, those of its elements that decay and the others apart."""
        shard, moments, spec = self._shards[number], self.moments, self._spec
        steps = torch.full((), float(moments.num_steps - 1), device=shard.values_E.device)  # counted by the kernel
        for block in blocks_of(shard):
            gradients_E = gradients_of(shard, block, gradient_factor)
            for run, decays in shard.runs(block):
                in_block = slice(run.start - block.start, run.stop - block.start)
                adamw(
                    [shard.values_E[run]],
                    [gradients_E[in_block]],
                    [moments.first[number][run]],
                    [moments.second[number][run]],
                    [],
                    [steps.clone()],
                    fused=True,
                    amsgrad=False,
                    beta1=spec.beta1,
                    beta2=spec.beta2,
                    lr=learning_rate,
                    weight_decay=spec.weight_decay if decays else 0.0,
                    eps=spec.epsilon,
                    maximize=False,
                )

    def _update(self, number: int, learning_rate: float, gradient_factor: torch.Tensor | None) -> None:
        """Update a shard, operation by operation."""
        shard, (correction1, correction2) = self._shards[number], self.moments.corrections
        for block in blocks_of(shard):
            first_E, second_E = self.moments.add(number, block, gradient_factor)
            for run, decays in shard.runs(block):
                if decays:
                    shard.values_E[run].mul_(1 - learning_rate * self._spec.weight_decay)
            denominator_E = (second_E.sqrt() / math.sqrt(correction2)).add_(self._spec.epsilon)
            shard.values_E[block].addcdiv_(first_E, denominator_E, value=-learning_rate / correction1)
