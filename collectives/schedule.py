"""Schedule of one collective of n members: messages with their chunks, ends and dependencies.

A collective cuts its buffer into equal parts and moves chunks, each of one part's size, in steps. A schedule says
nothing of bytes, ranks or time: members are numbered 0 to n - 1 in ring order, and `expansion` puts a schedule on a
placement as often as a trace asks for it. An algorithm says only who sends what in which step: what a message must wait
for follows from that.

A chunk belongs to the member of the same number in a reduce-scatter and an all-gather; in an all-to-all, chunk i n + j
is what member i has for member j. Where several channels cut each chunk further, K = k n or k n**2 chunks keep that
order: the k pieces of a chunk follow one another.

Shapes: M messages, n members, K chunks, E chunks of all messages, D dependencies.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.traces import Dependencies

Move = tuple[int, int, int, int, bool]  # step, sender, receiver, chunk, whether the receiver adds it to its own


@dataclass(frozen=True, kw_only=True)
class GroupShape:
    """Shape of a group on its hosts: n members in ring order, `local_size` after one another on each host.

    `local_size` is 1 where no two neighbours share a host, and where hosts have unequal numbers of members.
    """

    num_members: int
    local_size: int = 1

    def __post_init__(self) -> None:
        assert self.num_members >= 1, "a group has a member"
        assert self.num_members % self.local_size == 0, "every host has as many members"

    @property
    def num_hosts(self) -> int:
        """Return the number of hosts, or of blocks of `local_size` members."""
        return self.num_members // self.local_size


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The messages of one collective, ordered by step."""

    num_members: int
    num_parts: int  # equal parts of the buffer
    part_K: IntArray  # the part that each chunk is; its size
    step_M: IntArray
    sender_M: IntArray  # member
    receiver_M: IntArray  # member
    is_reduced_M: BoolArray  # the receiver adds the chunks to its own; otherwise they replace its own
    channel_M: IntArray  # messages of different channels take different connections
    chunk_offset_M1: IntArray  # message m carries chunk_E[chunk_offset_M1[m]:chunk_offset_M1[m + 1]], one or more
    chunk_E: IntArray
    dependencies: Dependencies  # messages, each to this one's sender, that must have arrived before it leaves

    def __post_init__(self) -> None:
        assert (np.diff(self.step_M) >= 0).all(), "messages are ordered by step"
        assert (np.diff(self.chunk_offset_M1) > 0).all(), "every message carries something"
        waiting_D = np.repeat(self.sender_M, np.diff(self.dependencies.offset_N1))
        assert (self.receiver_M[self.dependencies.row_D] == waiting_D).all(), "a message waits for another's arrival"

    def __len__(self) -> int:
        return len(self.sender_M)

    def chunks_of(self, message: int) -> IntArray:
        """Return the chunks that a message carries."""
        return self.chunk_E[self.chunk_offset_M1[message] : self.chunk_offset_M1[message + 1]]

    def bytes_M(self, num_bytes: int | IntArray) -> IntArray:
        """Return the bytes of each message of collectives of one or more buffers, shape (..., M)."""
        size_E = chunk_sizes(num_bytes, self.num_parts)[..., self.part_K[self.chunk_E]]
        if not len(self):
            return size_E
        return np.asarray(np.add.reduceat(size_E, self.chunk_offset_M1[:-1], axis=-1))


def from_moves(num_members: int, num_chunks: int, moves: Iterable[Move]) -> Schedule:
    """Return the schedule of chunks' moves given one by one, in any order, where every chunk is a part of its own."""
    table = np.array(list(moves), np.int64).reshape(-1, 5)
    return from_columns(
        num_members,
        np.arange(num_chunks),
        step_E=table[:, 0],
        sender_E=table[:, 1],
        receiver_E=table[:, 2],
        chunk_E=table[:, 3],
        is_reduced_E=table[:, 4].astype(bool),
    )


def from_columns(
    num_members: int,
    part_K: IntArray,
    *,
    step_E: IntArray,
    sender_E: IntArray,
    receiver_E: IntArray,
    chunk_E: IntArray,
    is_reduced_E: BoolArray,
) -> Schedule:
    """Return the schedule of chunks' moves, on one channel, with what each message must wait for.

    What one member sends another in one step is one message.
    """
    order_E = np.lexsort((chunk_E, is_reduced_E, receiver_E, sender_E, step_E))
    key_E4 = np.stack([step_E, sender_E, receiver_E, is_reduced_E], axis=1)[order_E]
    begins_E = np.ones(len(order_E), bool)
    begins_E[1:] = (key_E4[1:] != key_E4[:-1]).any(axis=1)
    first_M = np.flatnonzero(begins_E)
    message_E, chunk_E = np.cumsum(begins_E) - 1, chunk_E[order_E]
    step_M, sender_M, receiver_M, is_reduced_M = key_E4[first_M].T
    num_chunks = len(part_K)
    return Schedule(
        num_members=num_members,
        num_parts=int(part_K.max(initial=0)) + 1,
        part_K=part_K,
        step_M=step_M,
        sender_M=sender_M,
        receiver_M=receiver_M,
        is_reduced_M=is_reduced_M.astype(bool),
        channel_M=np.zeros(len(first_M), np.int64),
        chunk_offset_M1=np.append(first_M, len(order_E)),
        chunk_E=chunk_E,
        dependencies=_arrivals_before(
            message_E,
            read_E=sender_M[message_E] * num_chunks + chunk_E,
            written_E=receiver_M[message_E] * num_chunks + chunk_E,
            step_E=step_M[message_E],
            is_reduced_E=is_reduced_M[message_E].astype(bool),
            num_messages=len(first_M),
        ),
    )


def chunk_sizes(num_bytes: int | IntArray, num_chunks: int) -> IntArray:
    """Return the bytes of each chunk, shape (..., num_chunks): as equal as can be, the larger ones first.

    A buffer of fewer bytes than chunks leaves the last chunks empty.
    """
    size, rest = np.divmod(np.asarray(num_bytes, np.int64)[..., None], num_chunks)
    return np.asarray(size + (np.arange(num_chunks) < rest), np.int64)


def _arrivals_before(
    message_E: IntArray,
    *,
    read_E: IntArray,
    written_E: IntArray,
    step_E: IntArray,
    is_reduced_E: BoolArray,
    num_messages: int,
) -> Dependencies:
    """Return what each message waits for: all that has come, in earlier steps, to the places it reads.

    A place is one member's copy of one chunk. A move that replaces the copy makes what came before it unnecessary.
    """
    order_E = np.lexsort((step_E, written_E))  # arrivals by place, then step
    stride = int(step_E.max(initial=0)) + 2
    key_E = written_E[order_E] * stride + step_E[order_E]
    begin_E = np.searchsorted(key_E, read_E * stride)
    end_E = np.searchsorted(key_E, read_E * stride + step_E)
    last_replacing_E = np.maximum.accumulate(np.where(is_reduced_E[order_E], -1, np.arange(len(order_E))))
    latest_E = last_replacing_E[np.maximum(end_E - 1, 0)] if len(order_E) else end_E
    begin_E = np.maximum(begin_E, latest_E)
    num_waits_E = end_E - begin_E
    offset_E = np.cumsum(num_waits_E) - num_waits_E
    arrival_D = order_E[np.arange(num_waits_E.sum()) - np.repeat(offset_E - begin_E, num_waits_E)]
    pair_D = np.unique(np.repeat(message_E, num_waits_E) * num_messages + message_E[arrival_D])
    waiting_D, row_D = np.divmod(pair_D, max(num_messages, 1))
    counts_M = np.bincount(waiting_D, minlength=num_messages)
    return Dependencies(offset_N1=np.concatenate([[0], np.cumsum(counts_M)]), row_D=row_D)
