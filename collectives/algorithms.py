"""Table of the collective algorithms that can be chosen by name.

To add one: write its module of functions from a group's shape to a Schedule and to its Cost, and list it here. Proofs,
costs and the packet engine's cases follow from the list. A file or a package may add one as `ALGORITHM`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.collectives.schedules import (
    bruck,
    direct,
    double_binary_tree,
    halving_doubling,
    hierarchical,
    ring,
    two_dimensional,
)
from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.extensions.guards import place_of
from fabrictune.foundation.extensions.kinds import Kind
from fabrictune.foundation.extensions.tables import Table
from fabrictune.foundation.traces import Operation

NUM_PROVED = (1, 2, 3, 4, 6, 8)  # members of the groups on which an algorithm from outside is proved

MakeSchedule = Callable[[GroupShape], Schedule]


def _two_per_pair(num_members: int) -> int:
    return 2 * num_members * (num_members - 1)


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """One operation by one algorithm."""

    make_schedule: MakeSchedule
    cost: Callable[[GroupShape], Cost]
    most_messages: Callable[[int], int] = _two_per_pair  # of one collective of n members


@dataclass(frozen=True, kw_only=True, eq=False)
class Algorithm:
    """A family of schedules: one implementation for each operation that the algorithm covers."""

    summary: str
    implementations: Mapping[Operation, Implementation]

    def implementation_of(self, operation: Operation) -> Implementation:
        """Return the algorithm's own implementation of an operation, or the default one."""
        return self.implementations.get(operation) or DEFAULTS[operation]


_RING: Mapping[Operation, Implementation] = {
    Operation.ALL_REDUCE: Implementation(make_schedule=ring.all_reduce, cost=ring.all_reduce_cost),
    Operation.REDUCE_SCATTER: Implementation(make_schedule=ring.reduce_scatter, cost=ring.reduce_scatter_cost),
    Operation.ALL_GATHER: Implementation(make_schedule=ring.all_gather, cost=ring.all_gather_cost),
    Operation.BROADCAST: Implementation(make_schedule=ring.broadcast, cost=ring.broadcast_cost),
}

# For the operations that an algorithm has no implementation of.
DEFAULTS: Mapping[Operation, Implementation] = {
    **_RING,
    Operation.ALL_TO_ALL: Implementation(make_schedule=direct.all_to_all, cost=direct.all_to_all_cost),
    Operation.SEND: Implementation(make_schedule=direct.send, cost=direct.send_cost),
    Operation.BARRIER: _RING[Operation.ALL_REDUCE],  # of no bytes: every member waits for every other
}


def _check_algorithm(algorithm: Algorithm) -> Iterator[Mistake]:
    """Yield the first thing that is wrong with each operation, proved symbolically for small groups."""
    for operation, implementation in algorithm.implementations.items():
        if error := next(_errors(implementation, operation), ""):
            yield Mistake(where=place_of(implementation.make_schedule), found=f"{operation.name.lower()} {error}")


def _errors(implementation: Implementation, operation: Operation) -> Iterator[str]:
    shapes = (GroupShape(num_members=n, local_size=g) for n in NUM_PROVED for g in (1, 2, 4) if n % g == 0)
    for shape in shapes:
        schedule: object = implementation.make_schedule(shape)
        group = f"of {shape.num_members} members, {shape.local_size} a host"
        if not isinstance(schedule, Schedule):
            yield f"{group}: {type(schedule).__name__} where a Schedule is needed"
            return
        yield from (f"{group}: {error}" for error in find_errors(schedule, operation))
        most = implementation.most_messages(shape.num_members)
        if len(schedule) > most:
            yield f"{group}: {len(schedule)} messages, where most_messages says {most}"
        implementation.cost(shape)


COLLECTIVE = Kind(
    what="collective algorithm",
    group="fabrictune.collectives",
    value_type=Algorithm,
    attribute="ALGORITHM",
    check=_check_algorithm,
)

_OWN = {
    "ring": Algorithm(
        summary="chunks pass round a ring of neighbours; fewest bytes, most steps",
        implementations=_RING,
    ),
    "double_binary_tree": Algorithm(
        summary="sums climb two complementary trees and come down again; few steps, for small and middle sizes",
        implementations={
            Operation.ALL_REDUCE: Implementation(
                make_schedule=double_binary_tree.all_reduce,
                cost=double_binary_tree.all_reduce_cost,
                most_messages=double_binary_tree.all_reduce_most_messages,
            )
        },
    ),
    "halving_doubling": Algorithm(
        summary="partners exchange halves at halving distances; few steps and few bytes, best for powers of two",
        implementations={
            Operation.ALL_REDUCE: Implementation(
                make_schedule=halving_doubling.all_reduce, cost=halving_doubling.all_reduce_cost
            )
        },
    ),
    "bruck": Algorithm(
        summary="neighbours at doubling distances; few steps and few bytes for any number of ranks (NCCL's PAT)",
        implementations={
            Operation.ALL_REDUCE: Implementation(make_schedule=bruck.all_reduce, cost=bruck.all_reduce_cost),
            Operation.REDUCE_SCATTER: Implementation(
                make_schedule=bruck.reduce_scatter, cost=bruck.reduce_scatter_cost
            ),
            Operation.ALL_GATHER: Implementation(make_schedule=bruck.all_gather, cost=bruck.all_gather_cost),
        },
    ),
    "hierarchical": Algorithm(
        summary="NVLink inside the host, a ring per rail between hosts; an all-to-all keeps to its rails (PXN)",
        implementations={
            Operation.ALL_REDUCE: Implementation(
                make_schedule=hierarchical.all_reduce, cost=hierarchical.all_reduce_cost
            ),
            Operation.REDUCE_SCATTER: Implementation(
                make_schedule=hierarchical.reduce_scatter, cost=hierarchical.reduce_scatter_cost
            ),
            Operation.ALL_GATHER: Implementation(
                make_schedule=hierarchical.all_gather, cost=hierarchical.all_gather_cost
            ),
            Operation.ALL_TO_ALL: Implementation(
                make_schedule=hierarchical.all_to_all, cost=hierarchical.all_to_all_cost
            ),
        },
    ),
    "2dh": Algorithm(
        summary="an all-to-all inside the hosts and then one between them, in few large messages on each rail",
        implementations={
            Operation.ALL_TO_ALL: Implementation(
                make_schedule=two_dimensional.all_to_all,
                cost=two_dimensional.all_to_all_cost,
            )
        },
    ),
}

ALGORITHMS = Table(COLLECTIVE, _OWN)
