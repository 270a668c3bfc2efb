"""The collective algorithms that can be chosen by name.

To add one: write its module of functions from a group's shape to a Schedule, prove it with `checker`, list it here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.collectives.schedules import bruck, direct, double_binary_tree, halving_doubling, hierarchical, ring
from fabrictune.foundation.traces import Operation

MakeSchedule = Callable[[GroupShape], Schedule]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A family of schedules, one function of a group's shape for each operation it can do."""

    summary: str
    schedules: Mapping[Operation, MakeSchedule]
    most_messages: Callable[[int], int] = lambda n: 2 * n * (n - 1)  # of one collective of n members

    def schedule_for(self, operation: Operation) -> MakeSchedule:
        """Return the function for an operation: the algorithm's own, or else the plain one."""
        return self.schedules.get(operation) or PLAIN[operation]


# What every algorithm does an operation by that it has no way of its own for.
PLAIN: Mapping[Operation, MakeSchedule] = {
    Operation.ALL_REDUCE: ring.all_reduce,
    Operation.REDUCE_SCATTER: ring.reduce_scatter,
    Operation.ALL_GATHER: ring.all_gather,
    Operation.BROADCAST: ring.broadcast,
    Operation.ALL_TO_ALL: direct.all_to_all,
    Operation.SEND: direct.send,
    Operation.BARRIER: ring.all_reduce,  # of no bytes: every member waits for every other
}

ALGORITHMS: Mapping[str, Algorithm] = {
    "ring": Algorithm(
        summary="chunks travel round a ring of neighbours; moves the fewest bytes, takes the most steps",
        schedules={
            Operation.ALL_REDUCE: ring.all_reduce,
            Operation.REDUCE_SCATTER: ring.reduce_scatter,
            Operation.ALL_GATHER: ring.all_gather,
            Operation.BROADCAST: ring.broadcast,
        },
    ),
    "double_binary_tree": Algorithm(
        summary="sums climb two complementary trees and come down again; few steps, for small and middle sizes",
        schedules={Operation.ALL_REDUCE: double_binary_tree.all_reduce},
        most_messages=lambda n: 4 * (n - 1),
    ),
    "halving_doubling": Algorithm(
        summary="partners exchange halves at halving distances; few steps and few bytes, best for powers of two",
        schedules={Operation.ALL_REDUCE: halving_doubling.all_reduce},
    ),
    "bruck": Algorithm(
        summary="neighbours at doubling distances; few steps and few bytes for any number of ranks (NCCL's PAT)",
        schedules={
            Operation.ALL_REDUCE: bruck.all_reduce,
            Operation.REDUCE_SCATTER: bruck.reduce_scatter,
            Operation.ALL_GATHER: bruck.all_gather,
        },
    ),
    "hierarchical": Algorithm(
        summary="NVLink inside the host, a ring a rail between hosts; an all-to-all keeps to its rails (PXN)",
        schedules={
            Operation.ALL_REDUCE: hierarchical.all_reduce,
            Operation.REDUCE_SCATTER: hierarchical.reduce_scatter,
            Operation.ALL_GATHER: hierarchical.all_gather,
            Operation.ALL_TO_ALL: hierarchical.all_to_all,
        },
    ),
}
