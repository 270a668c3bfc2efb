"""Interleaved 1F1B: several chunks a rank, so that a micro-batch passes each rank several times and fills it sooner.

Micro-batches go through the chunks in groups of `pp`. Their number must be a multiple of `pp`: with a smaller last
group ranks can deadlock (`deadlock_check` finds it for 4 ranks, 3 chunks, 5 micro-batches).

Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
section 2.2.2.
"""

from collections.abc import Iterator
from typing import ClassVar

from fabrictune.foundation.errors import Mistake
from fabrictune.trainer_probe.parallel.schedule import Pass, PassKind, PassTimes, PipelineShape, Schedule
from fabrictune.trainer_probe.parallel.schedules.one_forward_one_backward import one_in_turn


class Interleaved(Schedule):
    """Two chunks a rank, or more."""

    bubble_formula: ClassVar[str] = "(p - 1) / (v m)"

    def passes_of_rank(self, shape: PipelineShape, rank: int) -> tuple[Pass, ...]:
        """Return 2 (p - 1 - r) + (v - 1) p forward passes, then pairs, then the remaining backward passes."""
        forward = [_pass("forward", shape, rank, chunk, batch) for chunk, batch in _visits(shape)]
        backward = [_pass("backward", shape, rank, shape.virtual - 1 - chunk, batch) for chunk, batch in _visits(shape)]
        return one_in_turn(forward, backward, num_ahead=2 * (shape.pp - 1 - rank) + (shape.virtual - 1) * shape.pp)

    def bubble_fraction(self, shape: PipelineShape, times: PassTimes) -> float:
        """Return (p - 1) / (v m)."""
        return (shape.pp - 1) / (shape.virtual * shape.num_batches)

    def mistakes(self, shape: PipelineShape) -> Iterator[Mistake]:
        """Return what is wrong with the number of chunks or micro-batches."""
        if shape.virtual == 1:
            yield Mistake(
                where="virtual",
                found="1",
                allowed="2 or more with the schedule interleaved",
                next_step="choose the schedule 1f1b for one chunk",
            )
        elif shape.pp == 1:
            yield Mistake(where="virtual", found=str(shape.virtual), allowed="1 where pp is 1", next_step="raise pp")
        elif shape.num_batches % shape.pp:
            yield Mistake(
                where="num_batches",
                found=str(shape.num_batches),
                allowed=f"a multiple of pp {shape.pp} where virtual is above 1",
            )


def _visits(shape: PipelineShape) -> list[tuple[int, int]]:
    """Return (chunk, micro-batch) in the order of the forward passes."""
    return [
        (chunk, batch)
        for first in range(0, shape.num_batches, shape.pp)
        for chunk in range(shape.virtual)
        for batch in range(first, min(first + shape.pp, shape.num_batches))
    ]


def _pass(kind: PassKind, shape: PipelineShape, rank: int, chunk: int, batch: int) -> Pass:
    return Pass(kind=kind, stage=chunk * shape.pp + rank, batch=batch)
