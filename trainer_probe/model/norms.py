"""Norms over a token's features: their weights, how they run, and what autograd keeps of them.

Source: Ba et al., "Layer normalization", 2016; Zhang and Sennrich, "Root mean square layer normalization", 2019.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabrictune.trainer_probe.model.sublayers import Share
from fabrictune.trainer_probe.model.weights import Weights, WeightSpec

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Norm(ABC):
    """A norm over `width` features."""

    width: int
    epsilon: float

    @abstractmethod
    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return the weights, which every rank of a tensor-parallel group has."""

    @abstractmethod
    def run(self, weights: Weights, name: str, x_PBD: "torch.Tensor") -> "torch.Tensor":
        """Return the normalised activations, P B D."""

    @abstractmethod
    def kept_bytes(self, share: Share) -> int:
        """Return the bytes kept of a rank's part: input, statistics, and the result that a product reads."""


class LayerNorm(Norm):
    """Mean 0 and variance 1 over the features, then scaled and shifted."""

    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return a gain and a shift."""
        yield WeightSpec(name=f"{name}.gain", shape=(self.width,), split=None, start="ones")
        yield WeightSpec(name=f"{name}.shift", shape=(self.width,), split=None, start="zeros")

    def run(self, weights: Weights, name: str, x_PBD: "torch.Tensor") -> "torch.Tensor":
        """Return the normalised activations, P B D."""
        from torch.nn import functional

        return functional.layer_norm(
            x_PBD, (self.width,), weights[f"{name}.gain"], weights[f"{name}.shift"], self.epsilon
        )

    def kept_bytes(self, share: Share) -> int:
        """Return the bytes of input and result, and of a mean and a deviation a token."""
        return share.part * (2 * self.width + 2) * share.element_bytes


class RmsNorm(Norm):
    """Mean square 1 over the features, then scaled."""

    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return a gain."""
        yield WeightSpec(name=f"{name}.gain", shape=(self.width,), split=None, start="ones")

    def run(self, weights: Weights, name: str, x_PBD: "torch.Tensor") -> "torch.Tensor":
        """Return the normalised activations, P B D."""
        from fabrictune.trainer_probe.model.functions import rms_norm

        return rms_norm(x_PBD, weights[f"{name}.gain"], self.epsilon)

    def kept_bytes(self, share: Share) -> int:
        """Return the bytes of input and result, and of one factor a token."""
        return share.part * (2 * self.width * share.element_bytes + share.sum_bytes)
