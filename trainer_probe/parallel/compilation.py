"""Passes compiled into one graph, whose small operations a compiler joins where each would read and write memory.

A graph takes tensors and knows no requests, so only stages whose passes make none can be compiled: those of a rank
that is alone in its tensor-parallel group.

Source: Ansel et al., "PyTorch 2: faster machine learning through dynamic Python bytecode transformation and graph
compilation", ASPLOS 2024.
"""

from collections.abc import Callable
from typing import Any

import torch

from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes


class CompiledPasses:
    """A stage's passes, compiled by one of torch's backends; the first micro-batch waits for the compiler."""

    def __init__(self, passes: Passes, backend: str | Callable[..., Any] = "inductor") -> None:
        self._passes = passes
        self._forward = torch.compile(passes.forward, backend=backend, fullgraph=True, dynamic=False)

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the stage by one graph for all micro-batches: it is given no name, there being no requests to name."""
        found: torch.Tensor = self._forward(batch, x_PBD, "")
        return found

    def backward(
        self, x_PBD: torch.Tensor | None, found: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Go back through the graph."""
        return self._passes.backward(x_PBD, found, gradient_PBD)
