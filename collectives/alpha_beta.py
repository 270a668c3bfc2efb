"""Alpha-beta costs: the rounds and the buffers each algorithm needs, and the time that follows from them.

    time = rounds * latency + buffers * bytes / rate

Rounds are messages that must follow one another; buffers are what must cross links one after another, as a share of the
collective's buffer: what the busiest NIC sends, and for a broadcast what its last link waits for besides. What stays
inside a host counts as rounds only. A group that is not said to share hosts has one member on each.

Source: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), for the model; each algorithm's own source for its counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one collective of a group costs at least."""

    rounds: int
    buffers: float

    def time_ps(self, num_bytes: int, rate_bps: float, latency_ps: float) -> float:
        """Return the time at a NIC's payload rate and one message's latency beyond its own bytes over that rate."""
        return self.rounds * latency_ps + self.buffers * num_bytes * BITS_PER_BYTE / rate_bps * PS_PER_S


def cost(algorithm: str, operation: Operation, shape: GroupShape) -> Cost:
    """Return the cost of an operation; raises InputError for one that the algorithm has no way of its own for."""
    try:
        return COSTS[algorithm, operation](shape)
    except KeyError:
        found = f"{operation.name.lower()} by {algorithm!r}"
        raise InputError(Mistake(where="algorithm", found=found, allowed="an operation it does its own way")) from None


def _ring(halves: int) -> Callable[[GroupShape], Cost]:
    def count(shape: GroupShape) -> Cost:
        steps = halves * (shape.num_members - 1)
        return Cost(rounds=steps, buffers=steps / shape.num_members)

    return count


def _ring_broadcast(shape: GroupShape) -> Cost:
    """The last of n chunks leaves after n - 1 others and crosses n - 1 links; the root sends the buffer once."""
    n = shape.num_members
    return Cost(rounds=n - 1, buffers=(2 * n - 2) / n if n > 1 else 0.0)


def _bruck(halves: int) -> Callable[[GroupShape], Cost]:
    """The last round of a number of members that is no power of two may not have to wait for the one before it."""

    def count(shape: GroupShape) -> Cost:
        n = shape.num_members
        return Cost(rounds=halves * (n - 1).bit_length(), buffers=halves * (n - 1) / n)

    return count


def _halving_doubling(shape: GroupShape) -> Cost:
    """Members that are folded into others add a round and, on the links between them, a buffer before and after."""
    n = shape.num_members
    log_active = n.bit_length() - 1
    active = 1 << log_active
    exchange = 2 * (active - 1) / active
    return Cost(rounds=2 * log_active + (2 if n > active else 0), buffers=exchange + (1 if n > active else 0))


def _double_binary_tree(shape: GroupShape) -> Cost:
    """An inner member of one tree is a leaf of the other: half a buffer up, two halves down, and half a buffer up."""
    n = shape.num_members
    return Cost(rounds=2 * (n.bit_length() - 1), buffers={1: 0.0, 2: 1.0, 3: 1.5}.get(n, 2.0))


def _hierarchical(halves: int) -> Callable[[GroupShape], Cost]:
    def count(shape: GroupShape) -> Cost:
        hops = shape.num_hosts - 1
        inside = 1 if shape.local_size > 1 else 0
        return Cost(rounds=halves * (hops + inside), buffers=halves * hops / shape.num_members)

    return count


def _direct(shape: GroupShape) -> Cost:
    n = shape.num_members
    return Cost(rounds=min(1, n - 1), buffers=(n - 1) / n)


def _send_to_next(shape: GroupShape) -> Cost:
    """Every member sends its whole buffer to the next."""
    return Cost(rounds=min(1, shape.num_members - 1), buffers=float(min(1, shape.num_members - 1)))


COSTS: Mapping[tuple[str, Operation], Callable[[GroupShape], Cost]] = {
    ("ring", Operation.ALL_REDUCE): _ring(2),
    ("ring", Operation.REDUCE_SCATTER): _ring(1),
    ("ring", Operation.ALL_GATHER): _ring(1),
    ("ring", Operation.BROADCAST): _ring_broadcast,
    ("double_binary_tree", Operation.ALL_REDUCE): _double_binary_tree,
    ("halving_doubling", Operation.ALL_REDUCE): _halving_doubling,
    ("bruck", Operation.ALL_REDUCE): _bruck(2),
    ("bruck", Operation.REDUCE_SCATTER): _bruck(1),
    ("bruck", Operation.ALL_GATHER): _bruck(1),
    ("hierarchical", Operation.ALL_REDUCE): _hierarchical(2),
    ("hierarchical", Operation.REDUCE_SCATTER): _hierarchical(1),
    ("hierarchical", Operation.ALL_GATHER): _hierarchical(1),
    ("direct", Operation.ALL_TO_ALL): _direct,
    ("direct", Operation.SEND): _send_to_next,
}
