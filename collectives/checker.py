"""Proof that a schedule does its operation: it is run on symbols, and every contribution is counted.

What a member holds of a chunk is a vector with a count for each member whose contribution is in it. The sum of an
all-reduce is right when every count is one: none missing, none added twice. The proof holds for any timing: a message
must have been preceded, through what it waits for, by every arrival it passes on, and by every message that still had
to carry away what it replaces.

Shapes: n members and contributors, K chunks, M messages. Memory n * K * n counts and M**2 bits.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.schedule import Schedule
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.traces import Operation

Held = NDArray[np.int16]  # (member, chunk, contributor) -> times the contribution is in the chunk
Goal = BoolArray  # (member, chunk, contributor) -> whether the contribution must be in the chunk, once


def find_errors(schedule: Schedule, operation: Operation) -> list[str]:
    """Return what is wrong with a schedule for an operation, in words; empty if it is right."""
    n, num_chunks = schedule.num_members, len(schedule.part_K)
    start, goal = (contract(n, num_chunks) for contract in _CONTRACTS[operation])
    held = start.astype(np.int16)
    _run(schedule, held)
    errors = list(_races(schedule))
    for member, chunk in np.argwhere(goal.any(axis=2) & (held != goal).any(axis=2)):
        counts = held[member, chunk]
        errors.append(f"member {member} ends with contributions {counts.tolist()} in chunk {chunk}")
    return errors


def _run(schedule: Schedule, held: Held) -> None:
    """Deliver every message into `held`, step by step."""
    message_E = np.repeat(np.arange(len(schedule)), np.diff(schedule.chunk_offset_M1))
    step_E = schedule.step_M[message_E]
    for step in np.unique(step_E):
        message, chunk = message_E[step_E == step], schedule.chunk_E[step_E == step]
        sender, receiver = schedule.sender_M[message], schedule.receiver_M[message]
        carried = held[sender, chunk].copy()
        is_reduced = schedule.is_reduced_M[message]
        held[receiver[~is_reduced], chunk[~is_reduced]] = carried[~is_reduced]
        np.add.at(held, (receiver[is_reduced], chunk[is_reduced]), carried[is_reduced])


def _races(schedule: Schedule) -> Iterator[str]:
    """Yield every pair of messages whose order matters and which nothing keeps in order.

    `before[m]` is the set of messages that have arrived when m leaves, as the bits of an integer.
    """
    before: list[int] = []
    arrivals: dict[tuple[int, int], int] = {}  # (member, chunk) -> messages of earlier steps, as bits
    departures: dict[tuple[int, int], int] = {}
    pending: list[tuple[dict[tuple[int, int], int], tuple[int, int], int]] = []
    step = -1
    for message in range(len(schedule)):
        if schedule.step_M[message] != step:
            step = int(schedule.step_M[message])
            _enter(pending)
        known = 0
        for earlier in schedule.dependencies.of(message).tolist():
            known |= before[earlier] | 1 << earlier
        before.append(known)
        sender, receiver = int(schedule.sender_M[message]), int(schedule.receiver_M[message])
        unread, unsent = 0, 0
        for chunk in schedule.chunks_of(message).tolist():
            unread |= arrivals.get((sender, chunk), 0)
            unsent |= departures.get((receiver, chunk), 0)
            pending += [(arrivals, (receiver, chunk), message), (departures, (sender, chunk), message)]
        for missing in _bits(unread & ~known):
            yield f"message {message} does not wait for message {missing}, whose chunk it passes on"
        for missing in _bits(unsent & ~known):
            yield f"message {message} may replace what message {missing} has still to carry away"


def _enter(pending: list[tuple[dict[tuple[int, int], int], tuple[int, int], int]]) -> None:
    """Take the messages of the step that has ended into their tables."""
    for table, place, message in pending:
        table[place] = table.get(place, 0) | 1 << message
    pending.clear()


def _bits(number: int) -> Iterator[int]:
    while number:
        yield (number & -number).bit_length() - 1
        number &= number - 1


def _owner_of_chunk(n: int, num_chunks: int) -> IntArray:
    assert num_chunks % n == 0, "every member owns as many chunks"
    return np.arange(num_chunks) // (num_chunks // n)


def _every_member_its_own(n: int, num_chunks: int) -> Goal:
    """Each member holds its own contribution to every chunk."""
    return np.repeat(np.eye(n, dtype=bool)[:, None, :], num_chunks, axis=1)


def _every_sum_everywhere(n: int, num_chunks: int) -> Goal:
    """Every member holds the sum of every chunk."""
    return np.ones((n, num_chunks, n), bool)


def _own_chunks_at_their_owner(n: int, num_chunks: int) -> Goal:
    """Each member holds the chunks it owns, which are its own contribution, and nothing else."""
    held = np.zeros((n, num_chunks, n), bool)
    owner_K = _owner_of_chunk(n, num_chunks)
    held[owner_K, np.arange(num_chunks), owner_K] = True
    return held


def _sums_at_their_owner(n: int, num_chunks: int) -> Goal:
    """Each member holds the sums of the chunks it owns; what it holds of others does not matter."""
    held = np.zeros((n, num_chunks, n), bool)
    held[_owner_of_chunk(n, num_chunks), np.arange(num_chunks)] = True
    return held


def _every_chunk_at_member_0(n: int, num_chunks: int) -> Goal:
    """Member 0 holds every chunk, which is its own contribution, and the others nothing."""
    held = np.zeros((n, num_chunks, n), bool)
    held[0, :, 0] = True
    return held


def _member_0s_chunks_everywhere(n: int, num_chunks: int) -> Goal:
    """Every member holds every chunk as member 0 contributed it."""
    held = np.zeros((n, num_chunks, n), bool)
    held[:, :, 0] = True
    return held


def _every_chunk_everywhere(n: int, num_chunks: int) -> Goal:
    """Every member holds each chunk as its owner contributed it."""
    held = np.zeros((n, num_chunks, n), bool)
    held[:, np.arange(num_chunks), _owner_of_chunk(n, num_chunks)] = True
    return held


def _what_each_has_for_each(n: int, num_chunks: int) -> Goal:
    """Member i holds the chunks from i to anyone."""
    held = np.zeros((n, num_chunks, n), bool)
    source_K = _owner_of_chunk(n * n, num_chunks) // n
    held[source_K, np.arange(num_chunks), source_K] = True
    return held


def _what_each_has_from_each(n: int, num_chunks: int) -> Goal:
    """Member j holds the chunks from anyone to j."""
    held = np.zeros((n, num_chunks, n), bool)
    source_K, destination_K = np.divmod(_owner_of_chunk(n * n, num_chunks), n)
    held[destination_K, np.arange(num_chunks), source_K] = True
    return held


Contract = Callable[[int, int], Goal]

# What members hold before and after. A chunk of which the goal holds nothing may hold anything.
_CONTRACTS: Mapping[Operation, tuple[Contract, Contract]] = {
    Operation.ALL_REDUCE: (_every_member_its_own, _every_sum_everywhere),
    Operation.REDUCE_SCATTER: (_every_member_its_own, _sums_at_their_owner),
    Operation.ALL_GATHER: (_own_chunks_at_their_owner, _every_chunk_everywhere),
    Operation.BROADCAST: (_every_chunk_at_member_0, _member_0s_chunks_everywhere),
    Operation.ALL_TO_ALL: (_what_each_has_for_each, _what_each_has_from_each),
    Operation.SEND: (_every_chunk_at_member_0, _member_0s_chunks_everywhere),
    Operation.BARRIER: (_every_member_its_own, _every_sum_everywhere),
}
