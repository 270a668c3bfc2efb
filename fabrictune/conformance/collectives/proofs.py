"""Every algorithm does its operation: symbolic execution, with each contribution counted and every race looked for."""

from functools import partial

from fabrictune.collectives.algorithms import ALGORITHMS, DEFAULTS, MakeSchedule
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.traces import Operation

_SIZES = (2, 3, 5, 7, 8, 13, 16, 31, 48, 64)
_HOST_SIZES = (1, 2, 4, 8)  # members a host


def cases() -> tuple[Case, ...]:
    """Return a case for each operation of each algorithm."""
    own = [
        (name, operation, implementation)
        for name, algorithm in ALGORITHMS.items()
        for operation, implementation in algorithm.implementations.items()
    ]
    direct = [("direct", operation, DEFAULTS[operation]) for operation in (Operation.ALL_TO_ALL, Operation.SEND)]
    return tuple(
        _proof(name, operation, implementation.make_schedule) for name, operation, implementation in (*own, *direct)
    )


def _proof(name: str, operation: Operation, make: MakeSchedule) -> Case:
    return Case(
        name=f"collectives.{name}-{operation.name.lower()}-errors".replace("_", "-"),
        source=f"symbolic execution for {', '.join(map(str, _SIZES))} ranks, up to 8 a host: each contribution once",
        unit="errors",
        **exactly(0),
        run=partial(_count_errors, make, operation),
    )


def _count_errors(make: MakeSchedule, operation: Operation) -> int:
    sizes = (2,) if operation == Operation.SEND else _SIZES
    shapes = [GroupShape(num_members=n, local_size=g) for n in sizes for g in _HOST_SIZES if n % g == 0]
    return sum(
        len(find_errors(make(shape), operation))
        for shape in shapes
        if operation != Operation.SEND or shape.local_size == 1
    )
