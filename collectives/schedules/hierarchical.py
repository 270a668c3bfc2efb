"""Hierarchical: NVLink inside the host, then one ring a rail between hosts.

A member is on host h at local place i, and is number h g + i of its group, with g members a host. Chunk m belongs to
member m, as everywhere. A reduce-scatter first adds up inside each host, directly over NVLink, so that local place i
holds its host's sums of all chunks of place i; these go round a ring of the members at place i, which share a rail. An
all-gather is the same backwards, an all-reduce is one after the other. A rail carries 1/g of the buffer, as in a flat
ring with one channel a rail, in fewer steps.

An all-to-all sends what is meant for another host's place j first to its own host's place j, over NVLink, so that
between hosts every message stays on one rail.

Source: MegaScale (NSDI'24), section 3.6 (multi-rail); NVIDIA, "Doubling all2all performance with NCCL 2.12" (PXN).
"""

from collections.abc import Iterator

import numpy as np

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Move, Schedule, from_columns, from_moves


def reduce_scatter(shape: GroupShape) -> Schedule:
    """Return the sums inside the hosts, then the rings between them."""
    return from_moves(shape.num_members, shape.num_members, _scatter(shape))


def reduce_scatter_cost(shape: GroupShape) -> Cost:
    """Return the cost of one half."""
    return _half_cost(shape, num_halves=1)


def all_gather(shape: GroupShape) -> Schedule:
    """Return the rings between the hosts, then the copies inside them."""
    return from_moves(shape.num_members, shape.num_members, _gather(shape, first_step=0))


def all_gather_cost(shape: GroupShape) -> Cost:
    """Return the cost of one half."""
    return _half_cost(shape, num_halves=1)


def all_reduce(shape: GroupShape) -> Schedule:
    """Return a reduce-scatter and then an all-gather."""
    messages = [*_scatter(shape), *_gather(shape, first_step=_num_steps(shape))]
    return from_moves(shape.num_members, shape.num_members, messages)


def all_reduce_cost(shape: GroupShape) -> Cost:
    """Return the cost of both halves."""
    return _half_cost(shape, num_halves=2)


def all_to_all(shape: GroupShape) -> Schedule:
    """Return each chunk's way: straight on its rail, or over the member of its host that shares the receiver's rail."""
    n = shape.num_members
    table = np.array(list(_detours(shape)), np.int64).reshape(-1, 4)
    return from_columns(
        n,
        np.tile(np.arange(n), n),
        step_E=table[:, 0],
        sender_E=table[:, 1],
        receiver_E=table[:, 2],
        chunk_E=table[:, 3],
        is_reduced_E=np.zeros(len(table), bool),
    )


def all_to_all_cost(shape: GroupShape) -> Cost:
    """Return the cost: NVLink and then the rail; a NIC sends its whole host's chunks for other hosts' members on it."""
    n, g = shape.num_members, shape.local_size
    rounds = min(1, g - 1) + min(1, shape.num_hosts - 1)
    return Cost(rounds=rounds, buffers=(n - g) / n)


def _half_cost(shape: GroupShape, *, num_halves: int) -> Cost:
    num_hops = shape.num_hosts - 1
    is_shared = shape.local_size > 1
    return Cost(rounds=num_halves * (num_hops + is_shared), buffers=num_halves * num_hops / shape.num_members)


def _num_steps(shape: GroupShape) -> int:
    return shape.num_hosts  # one inside the host, and a ring's steps


def _gather(shape: GroupShape, *, first_step: int) -> Iterator[Move]:
    """Yield the ring of each place, and each host's copies of what its members have gathered."""
    hosts, g = shape.num_hosts, shape.local_size
    for step in range(hosts - 1):
        for host in range(hosts):
            for place in range(g):
                receiver = (host + 1) % hosts * g + place
                yield first_step + step, host * g + place, receiver, (host - step) % hosts * g + place, False
    for host in range(hosts):
        for sender in range(g):
            for receiver in range(g):
                if receiver != sender:
                    for distance in range(hosts):  # a chunk is copied in the step after its arrival
                        chunk = (host - distance) % hosts * g + sender
                        yield first_step + distance, host * g + sender, host * g + receiver, chunk, False


def _scatter(shape: GroupShape) -> Iterator[Move]:
    last_step = _num_steps(shape) - 1
    for step, sender, receiver, chunk, _ in _gather(shape, first_step=0):
        yield last_step - step, receiver, sender, chunk, True


def _detours(shape: GroupShape) -> Iterator[tuple[int, int, int, int]]:
    n, g = shape.num_members, shape.local_size
    for distance in range(1, n):
        for sender in range(n):
            receiver = (sender + distance) % n
            chunk = sender * n + receiver
            on_rail = sender // g * g + receiver % g  # the sender's host, the receiver's rail
            if on_rail in (sender, receiver):
                yield distance, sender, receiver, chunk
            else:
                yield distance, sender, on_rail, chunk
                yield distance + 1, on_rail, receiver, chunk
