"""The collective algorithms that can be chosen by name.

To add one: write its module of functions from a number of members to a Schedule, prove it with `checker`, list it here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collectives import ring
from collectives.schedule import Schedule
from foundation.traces import Operation


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A family of schedules, one function of the number of members for each operation it can do."""

    summary: str
    schedules: Mapping[Operation, Callable[[int], Schedule]]


ALGORITHMS: Mapping[str, Algorithm] = {
    "ring": Algorithm(
        summary="chunks travel round a ring of neighbours; moves the fewest bytes, takes the most steps",
        schedules={
            Operation.ALL_REDUCE: ring.all_reduce,
            Operation.REDUCE_SCATTER: ring.reduce_scatter,
            Operation.ALL_GATHER: ring.all_gather,
            Operation.BROADCAST: ring.broadcast,
            Operation.BARRIER: ring.all_reduce,  # of no bytes: every member waits for every other
        },
    ),
}
