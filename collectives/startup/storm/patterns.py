"""Start-up patterns that a storm compares: the store operations of each rank, their server, and their number.

The backend's own exchange is in all of them alike: NCCL's, in which the first member of a group writes an identifier
that the others read. What differs is the waiting around it.

Source: torch 2.13 and earlier, `torch/distributed/distributed_c10d.py` (`_store_based_barrier`, `new_group`); MegaScale
(NSDI'24), section 3.5, for the first and the last two.
Left out: the store operations of gloo, and NCCL's groups that are made when first used.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.operation_count import OperationCount, ordered_operations
from fabrictune.collectives.startup.rendezvous import start
from fabrictune.collectives.startup.store_operations import Add, Get, Pause, Set, Steps, Wait

POLL_INTERVAL_S = 0.01  # of torch's barrier before 2.1
ServerKind = Literal["tcp-poll", "tcp-libuv", "redis"]
Barrier = Callable[[str, int], Steps[None]]


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One way to start."""

    name: str
    what: str
    server: ServerKind
    steps: Callable[[GroupPlan, int], Steps[None]]  # of one rank
    operations: Callable[[GroupPlan], OperationCount]  # of all ranks, in closed form
    is_exact: bool  # False: the closed form is the least there can be


def exchange_identifier(group: ProcessGroup, rank: int) -> Steps[None]:
    """Bring the first member's identifier to the others, as NCCL does when it makes a communicator."""
    if rank == group.members[0]:
        yield Set(f"{group.name}/id", "i" * 128)  # ncclUniqueId has 128 bytes
    else:
        yield Get(f"{group.name}/id")


def polled_barrier(name: str, world_size: int) -> Steps[None]:
    """Wait for all ranks as torch did before 2.1: ask for the count again and again."""
    yield Add(f"barrier:{name}", 1)
    while (yield Add(f"barrier:{name}", 0)) != world_size:
        yield Pause(POLL_INTERVAL_S)


def signalled_barrier(name: str, world_size: int) -> Steps[None]:
    """Wait for all ranks as torch does since 2.1: the rank that sees the full count writes a key that all wait for."""
    yield Add(f"barrier:{name}", 1)
    if (yield Add(f"barrier:{name}", 0)) == world_size:
        yield Set(f"barrier:{name}:last_worker", "1")
    yield Wait((f"barrier:{name}:last_worker",))


def _with_barriers(barrier: Barrier) -> Callable[[GroupPlan, int], Steps[None]]:
    def steps(plan: GroupPlan, rank: int) -> Steps[None]:
        own = {group.name for group in (plan.everyone, *plan.of_rank(rank))}
        for group in (plan.everyone, *plan.groups):
            if group.name in own:
                yield from exchange_identifier(group, rank)
            yield from barrier(group.name, plan.world_size)

    return steps


def _ordered(plan: GroupPlan, rank: int) -> Steps[None]:
    return start(plan, rank, f"rank{rank}", lambda group: exchange_identifier(group, rank))


def _without_waiting(plan: GroupPlan, rank: int) -> Steps[None]:
    for group in (plan.everyone, *plan.of_rank(rank)):
        yield from exchange_identifier(group, rank)


def _exchange_operations(plan: GroupPlan) -> OperationCount:
    groups = (plan.everyone, *plan.groups)
    return Counter({"Set": len(groups), "Get": sum(len(group.members) - 1 for group in groups)})


def _polled_operations(plan: GroupPlan) -> OperationCount:
    return _exchange_operations(plan) + _times(_num_barriers(plan), Counter({"Add": 2 * plan.world_size}))


def _signalled_operations(plan: GroupPlan) -> OperationCount:
    barrier = Counter({"Add": 2 * plan.world_size, "Set": 1, "Wait": plan.world_size, "awaited keys": plan.world_size})
    return _exchange_operations(plan) + _times(_num_barriers(plan), barrier)


def _ordered_operations(plan: GroupPlan) -> OperationCount:
    return _exchange_operations(plan) + ordered_operations(plan)


def _num_barriers(plan: GroupPlan) -> int:
    return 1 + len(plan.groups)


def _times(factor: int, count: OperationCount) -> OperationCount:
    return Counter({name: factor * number for name, number in count.items()})


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="legacy",
        what="torch before 2.1: TCPStore, and a barrier of all ranks after every group that asks again every 10 ms",
        server="tcp-poll",
        steps=_with_barriers(polled_barrier),
        operations=_polled_operations,
        is_exact=False,
    ),
    Pattern(
        name="tcp-barriers",
        what="torch with TORCH_DIST_INIT_BARRIER=1: TCPStore (libuv), a barrier of all ranks after every group",
        server="tcp-libuv",
        steps=_with_barriers(signalled_barrier),
        operations=_signalled_operations,
        is_exact=False,
    ),
    Pattern(
        name="redis-barriers",
        what="the same barriers, with Redis for a store",
        server="redis",
        steps=_with_barriers(signalled_barrier),
        operations=_signalled_operations,
        is_exact=False,
    ),
    Pattern(
        name="tcp-ordered",
        what="groups in order, by their members only, over TCPStore (libuv)",
        server="tcp-libuv",
        steps=_ordered,
        operations=_ordered_operations,
        is_exact=True,
    ),
    Pattern(
        name="redis-ordered",
        what="groups in order, by their members only, over Redis",
        server="redis",
        steps=_ordered,
        operations=_ordered_operations,
        is_exact=True,
    ),
    Pattern(
        name="tcp-unchecked",
        what="torch as of today: TCPStore (libuv), no waiting but the backend's, so no missing rank is named",
        server="tcp-libuv",
        steps=_without_waiting,
        operations=_exchange_operations,
        is_exact=True,
    ),
)


def all_steps(pattern: Pattern, plan: GroupPlan) -> Iterable[Steps[None]]:
    """Return what every rank does."""
    return (pattern.steps(plan, rank) for rank in range(plan.world_size))
