"""Two-dimensional hierarchical all-to-all: first inside the hosts, then between them on each rail.

Member h g + i is on host h at local place i, with g members a host. First every member sends each other one j of its
host, in one message, all that it has for the members at place j of any host. Then member j sends the member at place j
of each other host, in one message, what its whole host has for that one. A member sends g - 1 messages over NVLink and
one to each other host, where a direct all-to-all sends one to each member; chunks are those of `schedules/direct.py`.

Source: Hwang et al., "Tutel: adaptive mixture-of-experts at scale", MLSys 2023, section 3.4 (2DH All-to-All);
Rajbhandari et al., "DeepSpeed-MoE", ICML 2022, section 5.3.
"""

import numpy as np

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Schedule, from_columns
from fabrictune.foundation.arrays import IntArray


def all_to_all(shape: GroupShape) -> Schedule:
    """Return the messages inside the hosts, and those between them once their chunks have come."""
    n, g = shape.num_members, shape.local_size
    moves = np.concatenate([_inside(n, g), _between(n, g)], axis=1)
    return from_columns(
        n,
        np.tile(np.arange(n), n),
        step_E=moves[0],
        sender_E=moves[1],
        receiver_E=moves[2],
        chunk_E=moves[3],
        is_reduced_E=np.zeros(moves.shape[1], bool),
    )


def all_to_all_cost(shape: GroupShape) -> Cost:
    """Return the cost: a round inside the host, one between hosts, where a NIC sends g chunks to each other host."""
    n, g = shape.num_members, shape.local_size
    rounds = min(1, g - 1) + min(1, shape.num_hosts - 1)
    return Cost(rounds=rounds, buffers=(n - g) / n)


def _inside(n: int, g: int) -> IntArray:
    """Return step, sender, receiver and chunk of what goes to another place: steps 1 to g - 1."""
    step, sender, host = (index.ravel() for index in np.mgrid[1:g, 0:n, 0 : n // g])
    receiver = sender // g * g + (sender + step) % g
    return np.stack([step, sender, receiver, sender * n + host * g + receiver % g])


def _between(n: int, g: int) -> IntArray:
    """Return the same of what goes to another host, from each of its sources' hosts: steps g to g + hosts - 2."""
    hosts = n // g
    step, sender, place = (index.ravel() for index in np.mgrid[1:hosts, 0:n, 0:g])
    receiver = (sender + step * g) % n
    return np.stack([g - 1 + step, sender, receiver, (sender // g * g + place) * n + receiver])
