"""Direct: every member sends each other member what is meant for it, in one message.

An all-to-all's chunk from member i to member j is number i n + j, and is part j of i's buffer. Member i begins with its
right neighbour and goes round, so that at no time all send to the same one. A send is the same between two.

Source: NCCL, grouped ncclSend and ncclRecv; nccl-tests, alltoall.
"""

import numpy as np

from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Schedule, from_columns


def all_to_all(shape: GroupShape) -> Schedule:
    """Return n(n - 1) messages that wait for none of one another."""
    n = shape.num_members
    step_E, sender_E = (index_E.ravel() for index_E in np.mgrid[1:n, 0:n])
    receiver_E = (sender_E + step_E) % n
    return from_columns(
        n,
        np.tile(np.arange(n), n),
        step_E=step_E,
        sender_E=sender_E,
        receiver_E=receiver_E,
        chunk_E=sender_E * n + receiver_E,
        is_reduced_E=np.zeros(len(step_E), bool),
    )


def all_to_all_cost(shape: GroupShape) -> Cost:
    """Return the cost: one round, of all chunks but a member's own."""
    n = shape.num_members
    return Cost(rounds=min(1, n - 1), buffers=(n - 1) / n)


def send(shape: GroupShape) -> Schedule:
    """Return the one message from member 0 to member 1."""
    assert shape.num_members == 2, "a message has two ends"
    zero = np.zeros(1, np.int64)
    return from_columns(
        2, zero, step_E=zero, sender_E=zero, receiver_E=zero + 1, chunk_E=zero, is_reduced_E=np.zeros(1, bool)
    )


def send_cost(shape: GroupShape) -> Cost:
    """Return the cost: a member's whole buffer to the next."""
    num_messages = min(1, shape.num_members - 1)
    return Cost(rounds=num_messages, buffers=float(num_messages))
