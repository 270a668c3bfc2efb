"""Ring algorithms: all-reduce as a reduce-scatter and an all-gather, each half by itself, and broadcast.

Each member talks to its right neighbour only. In step s member m passes on chunk m - s - 1 (modulo n). For n - 1 steps
the receiver adds what comes to what it has, after which member m holds the whole sum of chunk m; for n - 1 more steps
the finished chunks travel round once. A broadcast's chunks leave the root one after another and are passed on to the
last. A member waits for a chunk's arrival before passing it on, and for nothing else.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
Left out: channels, and the slices into which NCCL cuts a chunk to begin passing it on before it has wholly arrived.
"""

import numpy as np

from collectives.schedule import Schedule
from foundation.traces import Dependencies


def all_reduce(num_members: int) -> Schedule:
    """Return both halves: 2(n - 1) steps, after which every member holds the sum of every chunk."""
    return _ring(num_members, first_step=0, last_step=2 * (num_members - 1))


def reduce_scatter(num_members: int) -> Schedule:
    """Return the first half: n - 1 steps, after which member m holds the sum of chunk m."""
    return _ring(num_members, first_step=0, last_step=num_members - 1)


def all_gather(num_members: int) -> Schedule:
    """Return the second half: n - 1 steps from member m holding chunk m to every member holding every chunk."""
    return _ring(num_members, first_step=num_members - 1, last_step=2 * (num_members - 1))


def broadcast(num_members: int) -> Schedule:
    """Return 2(n - 1) steps after which every member holds the n chunks of member 0; chunk c leaves it in step c."""
    hop_M, chunk_M = (index_M.ravel() for index_M in np.mgrid[0 : num_members - 1, 0:num_members])
    order_M = np.lexsort((hop_M, hop_M + chunk_M))
    row_of_message = np.argsort(order_M)  # row_of_message[hop * n + chunk]
    hop_M, chunk_M = hop_M[order_M], chunk_M[order_M]
    passes_on_M = hop_M > 0
    return Schedule(
        num_members=num_members,
        step_M=hop_M + chunk_M,
        sender_M=hop_M,
        receiver_M=hop_M + 1,
        chunk_M=chunk_M,
        is_reduced_M=np.zeros(len(hop_M), bool),
        dependencies=Dependencies(
            offset_N1=np.concatenate([[0], np.cumsum(passes_on_M)]),
            row_D=row_of_message[(hop_M - 1) * num_members + chunk_M][passes_on_M],
        ),
    )


def _ring(num_members: int, *, first_step: int, last_step: int) -> Schedule:
    """Return the ring's messages of steps `first_step` to `last_step` - 1, n a step, ordered by sender."""
    assert num_members >= 1, "a group has a member"
    step_M, sender_M = (index_M.ravel() for index_M in np.mgrid[first_step : max(first_step, last_step), 0:num_members])
    left_M = (sender_M - 1) % num_members
    message_M = np.arange(len(step_M))
    passes_on_M = step_M > first_step
    previous_step_M = message_M - sender_M - num_members  # the first message of the step before
    return Schedule(
        num_members=num_members,
        step_M=step_M,
        sender_M=sender_M,
        receiver_M=(sender_M + 1) % num_members,
        chunk_M=(sender_M - step_M - 1) % num_members,
        is_reduced_M=step_M < num_members - 1,
        dependencies=Dependencies(
            offset_N1=np.concatenate([[0], np.cumsum(passes_on_M)]),
            row_D=(previous_step_M + left_M)[passes_on_M],
        ),
    )
