"""Ring: all-reduce as a reduce-scatter and an all-gather, each half by itself, and broadcast.

Each member talks to its right neighbour only. In step s member m passes on chunk m - s - 1 (modulo n). For n - 1 steps
the receiver adds what arrives to what it has, after which member m holds the whole sum of chunk m; for n - 1 more steps
the finished chunks travel round once. A broadcast's chunks leave the root one after another and are passed on to the
last. A member waits for a chunk's arrival before passing it on, and for nothing else.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
"""

import numpy as np

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Schedule, from_columns


def all_reduce(shape: GroupShape) -> Schedule:
    """Return both halves: 2(n - 1) steps, after which every member holds the sum of every chunk."""
    return _ring(shape.num_members, first_step=0, last_step=2 * (shape.num_members - 1))


def all_reduce_cost(shape: GroupShape) -> Cost:
    """Return the cost of both halves."""
    return _ring_cost(shape, num_steps=2 * (shape.num_members - 1))


def reduce_scatter(shape: GroupShape) -> Schedule:
    """Return the first half: n - 1 steps, after which member m holds the sum of chunk m."""
    return _ring(shape.num_members, first_step=0, last_step=shape.num_members - 1)


def reduce_scatter_cost(shape: GroupShape) -> Cost:
    """Return the cost of one half."""
    return _ring_cost(shape, num_steps=shape.num_members - 1)


def all_gather(shape: GroupShape) -> Schedule:
    """Return the second half: n - 1 steps from member m holding chunk m to every member holding every chunk."""
    return _ring(shape.num_members, first_step=shape.num_members - 1, last_step=2 * (shape.num_members - 1))


def all_gather_cost(shape: GroupShape) -> Cost:
    """Return the cost of one half."""
    return _ring_cost(shape, num_steps=shape.num_members - 1)


def broadcast(shape: GroupShape) -> Schedule:
    """Return 2(n - 1) steps after which every member holds the n chunks of member 0; chunk c leaves it in step c."""
    num_members = shape.num_members
    hop_E, chunk_E = (index_E.ravel() for index_E in np.mgrid[0 : num_members - 1, 0:num_members])
    return from_columns(
        num_members,
        np.arange(num_members),
        step_E=hop_E + chunk_E,
        sender_E=hop_E,
        receiver_E=hop_E + 1,
        chunk_E=chunk_E,
        is_reduced_E=np.zeros(len(hop_E), bool),
    )


def broadcast_cost(shape: GroupShape) -> Cost:
    """Return the cost: the last of n chunks leaves after n - 1 others and crosses n - 1 links."""
    n = shape.num_members
    return Cost(rounds=n - 1, buffers=(2 * n - 2) / n)


def _ring_cost(shape: GroupShape, *, num_steps: int) -> Cost:
    return Cost(rounds=num_steps, buffers=num_steps / shape.num_members)


def _ring(num_members: int, *, first_step: int, last_step: int) -> Schedule:
    """Return the ring's messages of steps `first_step` to `last_step` - 1, n a step, ordered by sender."""
    step_E, sender_E = (index_E.ravel() for index_E in np.mgrid[first_step:last_step, 0:num_members])
    return from_columns(
        num_members,
        np.arange(num_members),
        step_E=step_E,
        sender_E=sender_E,
        receiver_E=(sender_E + 1) % num_members,
        chunk_E=(sender_E - step_E - 1) % num_members,
        is_reduced_E=step_E < num_members - 1,
    )
