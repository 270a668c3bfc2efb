"""Bruck: all-gather and reduce-scatter in ceil(log2 n) steps for any number of members, without a byte too many.

In step k member m sends to member m - 2**k (modulo n) the first 2**k chunks it holds, beginning with its own, or as
many as the other still lacks. A reduce-scatter is the same backwards, with sums in place of copies; an all-reduce is
one after the other.

Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE
TPDS 8 (1997). NCCL's PAT is of this family.
"""

from collections.abc import Iterator

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Move, Schedule, from_moves


def all_gather(shape: GroupShape) -> Schedule:
    """Return the steps from member m holding chunk m to every member holding every chunk."""
    return from_moves(shape.num_members, shape.num_members, _gather(shape.num_members, first_step=0))


def all_gather_cost(shape: GroupShape) -> Cost:
    """Return the cost of one half."""
    return _half_cost(shape, num_halves=1)


def reduce_scatter(shape: GroupShape) -> Schedule:
    """Return the steps after which member m holds the sum of chunk m."""
    return from_moves(shape.num_members, shape.num_members, _scatter(shape.num_members))


def reduce_scatter_cost(shape: GroupShape) -> Cost:
    """Return the cost of one half."""
    return _half_cost(shape, num_halves=1)


def all_reduce(shape: GroupShape) -> Schedule:
    """Return a reduce-scatter and then an all-gather."""
    n = shape.num_members
    return from_moves(n, n, [*_scatter(n), *_gather(n, first_step=_num_steps(n))])


def all_reduce_cost(shape: GroupShape) -> Cost:
    """Return the cost of both halves."""
    return _half_cost(shape, num_halves=2)


def _half_cost(shape: GroupShape, *, num_halves: int) -> Cost:
    """The last round of a number of members that is no power of two may not have to wait for the one before it."""
    n = shape.num_members
    return Cost(rounds=num_halves * _num_steps(n), buffers=num_halves * (n - 1) / n)


def _num_steps(n: int) -> int:
    return (n - 1).bit_length()


def _gather(n: int, *, first_step: int) -> Iterator[Move]:
    for step in range(_num_steps(n)):
        distance = 1 << step
        for member in range(n):
            for place in range(min(distance, n - distance)):
                yield first_step + step, member, (member - distance) % n, (member + place) % n, False


def _scatter(n: int) -> Iterator[Move]:
    last_step = _num_steps(n) - 1
    for step, sender, receiver, chunk, _ in _gather(n, first_step=0):
        yield last_step - step, receiver, sender, chunk, True
