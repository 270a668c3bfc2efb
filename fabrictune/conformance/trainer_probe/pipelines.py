"""Pipelines that deadlock on a transport, among all allowed ones of up to eight ranks, chunks and micro-batches."""

from dataclasses import replace
from functools import partial
from itertools import product

from fabrictune.foundation.cases import Case, exactly
from fabrictune.trainer_probe.parallel.deadlock_check import TRANSPORTS, find_deadlock
from fabrictune.trainer_probe.parallel.program import make_program
from fabrictune.trainer_probe.parallel.schedule import PipelineShape

_UP_TO_EIGHT = range(1, 9)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(
        Case(
            name=f"trainer_probe.pipelines-that-deadlock-{name}",
            source="closed form: a schedule free of deadlock lets all of 268 shapes finish, 64 of them of zb-h1",
            unit="shapes",
            **exactly(0),
            run=partial(_count, is_decoupled=is_decoupled),
        )
        for name, is_decoupled in (("decoupled", True), ("coupled", False))
    )


def _count(*, is_decoupled: bool) -> float:
    shapes = [
        PipelineShape(pp=pp, virtual=virtual, num_batches=num_batches)
        for pp, virtual, num_batches in product(_UP_TO_EIGHT, repeat=3)
        if virtual == 1 or num_batches % pp == 0
    ]
    shapes += [replace(shape, schedule="zb-h1") for shape in shapes if shape.virtual == 1]
    return float(sum(map(bool, (_deadlock(shape, is_decoupled) for shape in shapes))))


def _deadlock(shape: PipelineShape, is_decoupled: bool) -> list[str]:
    programs = [make_program(shape, rank, is_decoupled=is_decoupled) for rank in range(shape.pp)]
    return [line for transport in TRANSPORTS for line in find_deadlock(programs, transport)]
