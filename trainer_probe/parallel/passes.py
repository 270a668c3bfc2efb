"""Passes of a pipeline stage on a micro-batch.

The executor takes them as functions, so that a plan or a data-parallel strategy can put its own around them.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, RunLayer, run_chunk
from fabrictune.trainer_probe.model.operators import Operators
from fabrictune.trainer_probe.model.weights import Weights
from fabrictune.trainer_probe.parallel.weight_products import KeptProducts, WeightProduct, add_gradients
from fabrictune.trainer_probe.policies import Recompute


class Passes(Protocol):
    """A stage's passes. `tag` names the micro-batch at this stage, and begins its requests' tags."""

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Return the activations after the stage, P B D, or the loss; the first stage takes only the batch."""

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Add to the weights' gradients; returns the gradient of `x_PBD`, whose forward pass returned `output`.

        Where the schedule splits backward passes, products of the weights' gradients are kept for `weight_gradients`.
        """

    def weight_gradients(self) -> None:
        """Add the products that the oldest backward pass has kept to the weights' gradients."""


@dataclass(frozen=True, kw_only=True)
class ChunkPasses:
    """The passes of a chunk of the model over this rank's weights."""

    chunk: ChunkSpec
    weights: Weights
    operators: Operators
    kept: KeptProducts | None = None  # where the operators keep products
    recompute: Recompute = "none"
    run_one: RunLayer | None = None  # in place of a layer as written
    _waiting: deque[Sequence[WeightProduct]] = field(default_factory=deque, init=False, repr=False)

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the forward pass of the chunk."""
        return run_chunk(self.chunk, self.weights, self.operators, batch, x_PBD, tag, self.recompute, self.run_one)

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Run the backward pass of the chunk."""
        torch.autograd.backward(output, gradient_PBD)
        if self.kept is not None:
            self._waiting.append(self.kept.take())
        return None if x_PBD is None else x_PBD.grad

    def weight_gradients(self) -> None:
        """Add the oldest micro-batch's products."""
        add_gradients(self._waiting.popleft())
