"""What a pipeline stage computes on a micro-batch: a pass forward, and later one backward.

The executor takes them as two functions, so that what stands between it and the arithmetic can be another.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from dataclasses import dataclass
from typing import Protocol

import torch

from fabrictune.trainer_probe.model.chunk import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
from fabrictune.trainer_probe.model.layers import Weights
from fabrictune.trainer_probe.model.operators import Operators


class Passes(Protocol):
    """A stage's two passes. `tag` names the micro-batch at this stage, and begins the names of its requests."""

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Return the activations behind the stage, P B D, or the loss; the first stage takes the batch alone."""

    def backward(
        self, x_PBD: torch.Tensor | None, found: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Add to the weights' gradients; returns that of `x_PBD`, whose forward pass gave `found`."""


@dataclass(frozen=True, kw_only=True)
class ChunkPasses:
    """The passes of a chunk of the model over this rank's weights."""

    chunk: ChunkSpec
    weights: Weights
    operators: Operators

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the chunk."""
        return run_chunk(self.chunk, self.weights, self.operators, batch, x_PBD, tag)

    def backward(
        self, x_PBD: torch.Tensor | None, found: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Have autograd go back through the chunk."""
        torch.autograd.backward(found, gradient_PBD)
        return None if x_PBD is None else x_PBD.grad
