"""Proof that a schedule does its operation: it is run on symbols, and every contribution is counted.

What a member holds of a chunk is a vector with a count for each member whose contribution is in it. The sum of an
all-reduce is right when every count is one: none missing, none added twice. A message must also wait for the last
arrival of the chunk it carries, since otherwise it is right only by luck of timing.

Shapes: n members, chunks and contributors. Memory n**3 counts.
Left out: a chunk that arrives before the receiver has sent on the one it replaces.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from collectives.schedule import Schedule
from foundation.traces import Operation

Held = NDArray[np.int64]  # (member, chunk, contributor) -> times the contribution is in the chunk
NO_MESSAGE = -1


def find_errors(schedule: Schedule, operation: Operation) -> list[str]:
    """Return what is wrong with a schedule for an operation, in words; empty if it is right."""
    n = schedule.num_members
    start, goal = _CONTRACTS[operation]
    held = start(n)
    errors = _run(schedule, held)
    for member, chunk in np.argwhere(goal(n).any(axis=2) & (held != goal(n)).any(axis=2)):
        counts = held[member, chunk]
        errors.append(f"member {member} ends with contributions {counts.tolist()} in chunk {chunk}")
    return errors


def _run(schedule: Schedule, held: Held) -> list[str]:
    """Deliver every message into `held`, step by step; return the messages that leave too early."""
    errors: list[str] = []
    n = schedule.num_members
    last_arrival = np.full((n, n), NO_MESSAGE)
    for step in np.unique(schedule.step_M):
        messages = np.nonzero(schedule.step_M == step)[0]
        for message in messages.tolist():
            last = last_arrival[schedule.sender_M[message], schedule.chunk_M[message]]
            if last != NO_MESSAGE and last not in schedule.dependencies.of(message):
                errors.append(f"message {message} does not wait for message {last}, whose chunk it passes on")
        sender, receiver, chunk = (column[messages] for column in _routes(schedule))
        carried = held[sender, chunk].copy()
        is_reduced = schedule.is_reduced_M[messages]
        held[receiver[~is_reduced], chunk[~is_reduced]] = carried[~is_reduced]
        np.add.at(held, (receiver[is_reduced], chunk[is_reduced]), carried[is_reduced])
        last_arrival[receiver, chunk] = messages
    return errors


def _routes(schedule: Schedule) -> tuple[NDArray[np.int64], ...]:
    return schedule.sender_M, schedule.receiver_M, schedule.chunk_M


def _every_member_its_own(n: int) -> Held:
    """Each member holds its own contribution to every chunk."""
    return np.repeat(np.eye(n, dtype=np.int64)[:, None, :], n, axis=1)


def _every_sum_everywhere(n: int) -> Held:
    """Every member holds the sum of every chunk."""
    return np.ones((n, n, n), np.int64)


def _chunk_m_at_member_m(n: int) -> Held:
    """Member m holds chunk m, which is its own contribution, and nothing else."""
    member = np.arange(n)
    held = np.zeros((n, n, n), np.int64)
    held[member, member, member] = 1
    return held


def _sum_m_at_member_m(n: int) -> Held:
    """Member m holds the sum of chunk m; what it holds of other chunks does not matter."""
    member = np.arange(n)
    held = np.zeros((n, n, n), np.int64)
    held[member, member] = 1
    return held


def _every_chunk_at_member_0(n: int) -> Held:
    """Member 0 holds every chunk, which is its own contribution, and the others nothing."""
    held = np.zeros((n, n, n), np.int64)
    held[0, :, 0] = 1
    return held


def _member_0s_chunks_everywhere(n: int) -> Held:
    """Every member holds every chunk as member 0 contributed it."""
    held = np.zeros((n, n, n), np.int64)
    held[:, :, 0] = 1
    return held


def _every_chunk_everywhere(n: int) -> Held:
    """Every member holds chunk k as member k contributed it."""
    return np.repeat(np.eye(n, dtype=np.int64)[None, :, :], n, axis=0)


# What members hold before and after. A chunk of which the goal holds nothing may hold anything.
_CONTRACTS: Mapping[Operation, tuple[Callable[[int], Held], Callable[[int], Held]]] = {
    Operation.ALL_REDUCE: (_every_member_its_own, _every_sum_everywhere),
    Operation.REDUCE_SCATTER: (_every_member_its_own, _sum_m_at_member_m),
    Operation.ALL_GATHER: (_chunk_m_at_member_m, _every_chunk_everywhere),
    Operation.BROADCAST: (_every_chunk_at_member_0, _member_0s_chunks_everywhere),
    Operation.BARRIER: (_every_member_its_own, _every_sum_everywhere),
}
