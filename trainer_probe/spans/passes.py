"""Passes of a stage with a reading of the clock before and after each.

A stage's backward passes follow the order of its forward passes, in every schedule.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabrictune.foundation.spans import SpanKind

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.parallel.passes import Passes

_BATCH = re.compile(r"stage\d+\.batch(\d+)")


@dataclass(slots=True)
class TimedPass:
    """A pass, with readings of its rank's clock."""

    kind: SpanKind
    micro_batch: int
    chunk: int
    began: Any
    ended: Any


class TimedPasses:
    """Passes that are noted in the list which `current` returns (`parallel/passes.py`)."""

    def __init__(
        self, passes: "Passes", chunk: int, read: Callable[[], Any], current: Callable[[], list[TimedPass]]
    ) -> None:
        self._passes, self._chunk, self._read, self._current = passes, chunk, read, current
        self._forward, self._backward = deque[int](), deque[int]()  # micro-batches that wait for their next pass

    def forward(self, batch: "MicroBatch", x_PBD: "torch.Tensor | None", tag: str) -> "torch.Tensor":
        """Run the forward pass."""
        match = _BATCH.match(tag)
        assert match is not None, "a pass is named by its stage and micro-batch"
        micro_batch = int(match[1])
        self._forward.append(micro_batch)
        began = self._read()
        output = self._passes.forward(batch, x_PBD, tag)
        self._note(SpanKind.FORWARD, micro_batch, began)
        return output

    def backward(
        self, x_PBD: "torch.Tensor | None", output: "torch.Tensor", gradient_PBD: "torch.Tensor | None"
    ) -> "torch.Tensor | None":
        """Run the backward pass."""
        micro_batch = self._forward.popleft()
        self._backward.append(micro_batch)
        began = self._read()
        gradient = self._passes.backward(x_PBD, output, gradient_PBD)
        self._note(SpanKind.BACKWARD, micro_batch, began)
        return gradient

    def weight_gradients(self) -> None:
        """Add the oldest backward pass's products."""
        micro_batch = self._backward.popleft()
        began = self._read()
        self._passes.weight_gradients()
        self._note(SpanKind.WEIGHT_GRADIENT, micro_batch, began)

    def _note(self, kind: SpanKind, micro_batch: int, began: Any) -> None:
        self._current().append(TimedPass(kind, micro_batch, self._chunk, began, self._read()))
