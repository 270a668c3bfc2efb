"""Store operations of a job's ordered start: every rank's protocol run in memory, against the closed form.

A group of m members whose tree has i inner places takes 2m + 3i - 2 operations, 2m + 1 where it is flat, and joining
takes one a rank.
"""

from functools import partial

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.operation_count import count_operations, num_operations
from fabrictune.collectives.startup.rendezvous import start
from fabrictune.collectives.startup.store_operations import Steps
from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.layout import ParallelLayout

# TP 8, PP 8, DP d: 8d groups of 8 along TP and twice as many along PP at 17 operations, 64 groups of d, all 64d ranks
# in a tree of ceil((64d - 1) / 64) = d inner places, and 64d to join.
_JOBS = {
    4: 3 * 32 * 17 + 64 * 9 + (2 * 256 + 3 * 4 - 2) + 256,
    16: 3 * 128 * 17 + 64 * 33 + (2 * 1024 + 3 * 16 - 2) + 1024,
    32: 3 * 256 * 17 + 64 * 65 + (2 * 2048 + 3 * 32 - 2) + 2048,
}


def cases() -> tuple[Case, ...]:
    """Return a case for each size of job."""
    return tuple(
        Case(
            name=f"collectives.ordered-start-operations-{64 * dp}-ranks",
            source="closed form: 2m + 1 a flat group of m, 2m + 3i - 2 a tree with i inner places, 1 a rank to join",
            unit="operations",
            **exactly(expected),
            run=partial(_count, dp),
        )
        for dp, expected in _JOBS.items()
    )


def _count(dp: int) -> int:
    plan = GroupPlan.of_layout(ParallelLayout(tp=8, dp=dp, pp=8))
    protocols = (start(plan, rank, f"host:{rank}", _leave_to_torch) for rank in range(plan.world_size))
    return num_operations(count_operations(protocols))


def _leave_to_torch(group: ProcessGroup) -> Steps[None]:
    """Ask the store for nothing."""
    yield from ()
