"""Passes over weights that are gathered when their block's turn comes, and freed when the next one's has come.

In the forward pass a block's turn comes when one of its weights is looked up, in the backward pass when autograd
unpacks a tensor that it has saved: a view of a block's buffer, whose storage was freed in between. The next block is
gathered ahead where data parallelism overlaps, in the backward pass only if autograd has saved a weight of it: an
embedding needs no values there.

Source: Zhao et al., "PyTorch FSDP: experiences on scaling fully sharded data parallel", VLDB 2023, section 3.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.autograd.graph import saved_tensors_hooks

from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes


class GatheredBuffer(Protocol):
    """Weights whose values are there between `gather` and `release`."""

    weights: Mapping[str, torch.Tensor]

    def gather(self, tag: str) -> None:
        """Start to gather the values."""

    def finish(self) -> None:
        """Wait for them."""

    def release(self) -> None:
        """Free the memory of the values."""


class BlockTurns:
    """The blocks of a stage, one of them in use, in order of use, and where they overlap the next one on its way."""

    def __init__(self, blocks: Sequence[Sequence[GatheredBuffer]], *, is_overlapped: bool) -> None:
        self._blocks, self._is_overlapped = blocks, is_overlapped
        self._gathered: set[int] = set()
        self._saved: set[int] = set()  # blocks of which autograd has saved weights
        self._current: int | None = None
        self._tag: str | None = None  # of the pass that runs
        self._direction = 1
        self._block_of_storage = {
            _storage(weight): number
            for number, buffers in enumerate(blocks)
            for buffer in buffers
            for weight in buffer.weights.values()
        }

    def start_pass(self, tag: str, direction: int) -> None:
        """Start a forward pass (direction 1) or a backward pass (-1)."""
        self._tag, self._direction = tag, direction

    def end_pass(self) -> None:
        """Free all blocks."""
        for number in list(self._gathered):
            self._release(number)
        self._tag = self._current = None

    def use(self, number: int) -> None:
        """Return when a block's values are there; others are freed, the next one is on its way."""
        if self._tag is None or number == self._current:
            return
        for other in self._gathered - {number}:
            self._release(other)
        self._start(number)
        self._finish(number)
        self._current = number
        following = number + self._direction
        is_needed = following < len(self._blocks) if self._direction == 1 else following in self._saved
        if self._is_overlapped and is_needed:
            self._start(following)

    def pack(self, tensor: torch.Tensor) -> Any:
        """Return what autograd keeps of a tensor: for a weight, its block too."""
        number = self._block_of_storage.get(_storage(tensor))
        if number is None:
            return tensor
        self._saved.add(number)
        return number, tensor

    def unpack(self, packed: Any) -> torch.Tensor:
        """Return a tensor that autograd has kept, with its values."""
        if isinstance(packed, torch.Tensor):
            return packed
        number, tensor = packed
        self.use(number)
        result: torch.Tensor = tensor
        return result

    def _start(self, number: int) -> None:
        if number not in self._gathered:
            self._gathered.add(number)
            for buffer in self._blocks[number]:
                buffer.gather(f"{self._tag}.{'forward' if self._direction == 1 else 'backward'}")

    def _finish(self, number: int) -> None:
        for buffer in self._blocks[number]:
            buffer.finish()

    def _release(self, number: int) -> None:
        self._finish(number)
        self._gathered.remove(number)
        for buffer in self._blocks[number]:
            buffer.release()


class GatheredWeights(Mapping[str, torch.Tensor]):
    """The weights of a stage; to look one up in a pass is to use its block."""

    def __init__(self, blocks: Sequence[Sequence[GatheredBuffer]], turns: BlockTurns) -> None:
        self._turns = turns
        self._weights = {
            name: weight for block in blocks for buffer in block for name, weight in buffer.weights.items()
        }
        self._block_of = {
            name: number for number, block in enumerate(blocks) for buffer in block for name in buffer.weights
        }

    def __getitem__(self, name: str) -> torch.Tensor:
        self._turns.use(self._block_of[name])
        return self._weights[name]

    def __contains__(self, name: object) -> bool:
        return name in self._weights

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


class GatheredPasses:
    """The passes of a stage over gathered weights; backward passes must have the order of the forward ones."""

    def __init__(self, passes: Passes, turns: BlockTurns) -> None:
        self._passes, self._turns = passes, turns
        self._tags = deque[str]()  # of micro-batches between their forward and backward pass

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the pass."""
        self._tags.append(tag)
        self._turns.start_pass(tag, 1)
        with saved_tensors_hooks(self._turns.pack, self._turns.unpack):
            output = self._passes.forward(batch, x_PBD, tag)
        self._turns.end_pass()
        return output

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Run the pass."""
        self._turns.start_pass(self._tags.popleft(), -1)
        gradient = self._passes.backward(x_PBD, output, gradient_PBD)
        self._turns.end_pass()
        return gradient

    def weight_gradients(self) -> None:
        """Run the weights' pass."""
        self._passes.weight_gradients()


def _storage(tensor: torch.Tensor) -> int:
    number: int = tensor.untyped_storage()._cdata
    return number
