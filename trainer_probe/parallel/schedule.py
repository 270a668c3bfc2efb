"""Pipeline schedules as data: the order in which a rank runs its chunks on the micro-batches.

A model is cut into stages; of `pp` ranks with `virtual` chunks each, stage s is chunk s // pp of rank s % pp. A rank
first runs forward passes until its first gradient arrives (warm-up), then one forward and one backward pass in turn
(1F1B), then the remaining backward passes. With several chunks, micro-batches go through them in
groups of `pp`. Their number must be a multiple of `pp` then: with a smaller last group ranks can deadlock
(`deadlock_check` finds it for 4 ranks, 3 chunks, 5 micro-batches).

Source: Narayanan et al., SC 2021, section 2.2 (1F1B and its interleaved form).
"""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, kw_only=True)
class PipelineShape:
    """Ranks of a pipeline, chunks of a rank, micro-batches of a step."""

    pp: int
    virtual: int
    num_batches: int

    @property
    def num_stages(self) -> int:
        """Stages of the whole model."""
        return self.pp * self.virtual

    @property
    def bubble_fraction(self) -> float:
        """Idle over busy time, with passes of equal length and no communication time: (p - 1) / (v m)."""
        return (self.pp - 1) / (self.virtual * self.num_batches)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One micro-batch's pass through a stage, forward or backward."""

    direction: Direction
    stage: int
    batch: int

    def __str__(self) -> str:
        return f"stage{self.stage}.batch{self.batch}.{self.direction}"


def passes_of_rank(shape: PipelineShape, rank: int) -> tuple[Pass, ...]:
    """Return the passes of the pipeline's rank `rank` in its order."""
    forward = [_pass("forward", shape, rank, chunk, batch) for chunk, batch in _visits(shape)]
    backward = [_pass("backward", shape, rank, shape.virtual - 1 - chunk, batch) for chunk, batch in _visits(shape)]
    num_ahead = _num_warm_up(shape, rank)
    order = forward[:num_ahead]
    for ahead, behind in zip(forward[num_ahead:], backward, strict=False):
        order += [ahead, behind]
    return tuple(order + backward[len(forward) - num_ahead :])


def _visits(shape: PipelineShape) -> list[tuple[int, int]]:
    """Return (chunk, micro-batch) in the order of the forward passes."""
    return [
        (chunk, batch)
        for first in range(0, shape.num_batches, shape.pp)
        for chunk in range(shape.virtual)
        for batch in range(first, min(first + shape.pp, shape.num_batches))
    ]


def _num_warm_up(shape: PipelineShape, rank: int) -> int:
    """Return the number of forward passes before the first pair of a forward and a backward pass."""
    behind = shape.pp - 1 - rank
    num_ahead = behind if shape.virtual == 1 else 2 * behind + (shape.virtual - 1) * shape.pp
    return min(num_ahead, shape.virtual * shape.num_batches)


def _pass(direction: Direction, shape: PipelineShape, rank: int, chunk: int, batch: int) -> Pass:
    return Pass(direction=direction, stage=chunk * shape.pp + rank, batch=batch)
