"""Recursive halving and doubling: all-reduce in 2 log2(n) steps that moves as few bytes as a ring.

Partners exchange halves of what they still work on, a distance that halves each step, until each of p members holds the
sum of one chunk of p; the same steps backwards spread the sums. Where n is no power of two, p is the next lower one:
the first 2(n - p) members pair up, one of each pair gives its data to the other at the start and gets the result at the
end, which costs two more buffers on those links.

Source: Rabenseifner; Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
IJHPCA 19 (2005).
"""

from collections.abc import Iterator

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Move, Schedule, from_moves


def all_reduce(shape: GroupShape) -> Schedule:
    """Return the messages for any number of members; a chunk for each that takes part in the halving."""
    n = shape.num_members
    num_active = 1 << n.bit_length() - 1
    return from_moves(n, num_active, _messages(n, num_active))


def all_reduce_cost(shape: GroupShape) -> Cost:
    """Return the cost; members folded into others add a round and, on their links, a buffer before and after."""
    n = shape.num_members
    log_active = n.bit_length() - 1
    active = 1 << log_active
    exchange = 2 * (active - 1) / active
    return Cost(rounds=2 * log_active + (2 if n > active else 0), buffers=exchange + (1 if n > active else 0))


def _messages(n: int, num_active: int) -> Iterator[Move]:
    num_folded = n - num_active
    member_of = [2 * place if place < num_folded else place + num_folded for place in range(num_active)]
    num_steps = num_active.bit_length() - 1
    for pair in range(num_folded):
        for chunk in range(num_active):
            yield 0, 2 * pair + 1, 2 * pair, chunk, True
            yield 2 * num_steps + 1, 2 * pair, 2 * pair + 1, chunk, False
    for step in range(num_steps):
        distance = num_active >> step + 1
        for place in range(num_active):
            partner = place ^ distance
            for chunk in range(partner // distance * distance, partner // distance * distance + distance):
                yield 1 + step, member_of[place], member_of[partner], chunk, True
                yield 2 * num_steps - step, member_of[partner], member_of[place], chunk, False
