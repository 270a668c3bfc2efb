"""Weights: names, shapes, initial distribution, and the tensor-parallel split.

Weights that belong to heads have a dimension for them, so that a rank's share is always whole heads. Matrices multiply
activations from the right: input features first.

Source: Radford et al., "Language models are unsupervised multitask learners" (GPT-2), 2019, section 2.3, for the
initial weights.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Start = Literal["normal", "ones", "zeros"]
Weights = Mapping[str, "torch.Tensor"]

DEVIATION = 0.02  # of initial weights, the same for the embedding and for the layers that add to it


@dataclass(frozen=True, kw_only=True)
class WeightSpec:
    """One weight: its whole shape, and its split over a tensor-parallel group."""

    name: str
    shape: tuple[int, ...]
    split: int | None  # dimension that is split equally over ranks; None where every rank has the whole
    start: Start
    scale: float = 0.0  # standard deviation where the start is normal
    is_of_experts: bool = False  # whether the first dimension counts experts, which expert-parallel ranks divide
    first_element: int = 0  # place in the whole weight, of which this is a part

    @property
    def decays(self) -> bool:
        """Whether weight decay applies: to matrices and embeddings, not to biases, gains and shifts."""
        return self.start == "normal"

    def local_shape(self, tp: int) -> tuple[int, ...]:
        """Return the shape of one rank's part."""
        return tuple(size // tp if dimension == self.split else size for dimension, size in enumerate(self.shape))

    def run_length(self, tp: int) -> int:
        """Return how many elements of a rank's part follow one another in the whole weight, which is split."""
        assert self.split is not None, "a weight that every rank has whole is one run"
        return math.prod(self.local_shape(tp)[self.split :])

    def of_experts(self, ep: int, place: int) -> "WeightSpec":
        """Return the weight of the experts of rank `place` of `ep`, consecutive ones; another weight as it is."""
        if not self.is_of_experts or ep == 1:
            return self
        shape = (self.shape[0] // ep, *self.shape[1:])
        return replace(self, shape=shape, first_element=self.first_element + place * math.prod(shape))

    def local_part(self, whole: "torch.Tensor", tp: int, place: int) -> "torch.Tensor":
        """Return the part of rank `place` of `tp`, of this rank's experts where there are such."""
        own = whole.narrow(0, self.first_element // math.prod(self.shape[1:]), self.shape[0])
        return own if self.split is None else own.chunk(tp, self.split)[place]


def normal_weight(
    name: str, shape: tuple[int, ...], *, split: int | None, deviation: float = DEVIATION, is_of_experts: bool = False
) -> WeightSpec:
    """Return a matrix or an embedding, drawn from a normal distribution."""
    return WeightSpec(name=name, shape=shape, split=split, start="normal", scale=deviation, is_of_experts=is_of_experts)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """Experts of a layer, the slots that each has for a group of tokens, and the consecutive tokens of a group."""

    num_experts: int
    num_slots: int
    num_tokens: int
