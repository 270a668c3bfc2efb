"""Weights: names, shapes, initial distribution, and the tensor-parallel split.

Weights that belong to heads have a dimension for them, so that a rank's share is always whole heads. Matrices multiply
activations from the right: input features first.

Source: Radford et al., "Language models are unsupervised multitask learners" (GPT-2), 2019, section 2.3, for the
initial weights.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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

    def local_part(self, whole: "torch.Tensor", tp: int, place: int) -> "torch.Tensor":
        """Return the part of rank `place` of `tp`."""
        return whole if self.split is None else whole.chunk(tp, self.split)[place]


def normal_weight(name: str, shape: tuple[int, ...], *, split: int | None, deviation: float = DEVIATION) -> WeightSpec:
    """Return a matrix or an embedding, drawn from a normal distribution."""
    return WeightSpec(name=name, shape=shape, split=split, start="normal", scale=deviation)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """Experts of a layer, and the slots that each has for a sample."""

    num_experts: int
    num_slots: int
