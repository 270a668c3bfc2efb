"""Passes of a pipeline stage on a micro-batch, as written or compiled into one graph.

The executor takes them as functions, so that a compiler or a plan can replace the arithmetic behind them. A
compiled graph joins small operations that would each read and write memory. It takes tensors and makes no requests, so
only stages of a rank that is alone in its tensor-parallel group can be compiled.

Source: Ansel et al., "PyTorch 2: faster machine learning through dynamic Python bytecode transformation and graph
compilation", ASPLOS 2024.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
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
    _waiting: deque[Sequence[WeightProduct]] = field(default_factory=deque, init=False, repr=False)

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the forward pass of the chunk."""
        return run_chunk(self.chunk, self.weights, self.operators, batch, x_PBD, tag, self.recompute)

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


class CompiledPasses:
    """A stage's passes, compiled by one of torch's backends; the first micro-batch waits for the compiler."""

    def __init__(self, passes: Passes, backend: str | Callable[..., Any] = "inductor") -> None:
        self._passes = passes
        self._forward = torch.compile(passes.forward, backend=backend, fullgraph=True, dynamic=False)

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the stage by one graph for all micro-batches; without requests there are no tags."""
        output: torch.Tensor = self._forward(batch, x_PBD, "")
        return output

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Run the backward pass of the graph."""
        return self._passes.backward(x_PBD, output, gradient_PBD)

    def weight_gradients(self) -> None:
        """Add the oldest micro-batch's products."""
        self._passes.weight_gradients()
