"""Passes that run once and are then repeated.

All micro-batches ask a stage for the same, so a plan runs each stage's passes for the first of them only, on tensors
without values, and enters what they asked for again for the others, under their names.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from collections import deque

import torch

from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.planning.flop_clock import ProductClock
from fabrictune.trainer_probe.planning.plan_ledger import PlanLedger, Recording


class RepeatedPasses:
    """The passes of a stage, whose backward passes must come in the order of its forward ones."""

    def __init__(self, passes: Passes, ledger: PlanLedger, clock: ProductClock) -> None:
        self._passes, self._ledger, self._clock = passes, ledger, clock
        self._tags = deque[str]()  # of micro-batches that have gone forward and not yet backward
        self._forward: tuple[Recording, str, torch.Tensor] | None = None
        self._backward: tuple[Recording, str, torch.Tensor | None] | None = None

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the pass, or repeat what it asked for."""
        self._tags.append(tag)
        if self._forward is None:
            with self._ledger.recording() as recording, self._clock:
                found = self._passes.forward(batch, x_PBD, tag)
            self._forward = recording, tag, found.detach()
            return found
        recording, first_tag, found = self._forward
        self._ledger.repeat(recording, old=first_tag, new=tag)
        return found

    def backward(
        self, x_PBD: torch.Tensor | None, found: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Likewise."""
        tag = self._tags.popleft()
        if self._backward is None:
            with self._ledger.recording() as recording, self._clock:
                gradient = self._passes.backward(x_PBD, found, gradient_PBD)
            self._backward = recording, tag, gradient
            return gradient
        recording, first_tag, gradient = self._backward
        self._ledger.repeat(recording, old=first_tag, new=tag)
        return gradient
