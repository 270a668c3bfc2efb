"""Schedule of each collective of a trace: by algorithm and group shape, in channels and slices.

A group has a shape where its members, in ring order, lie on hosts in runs of one length. Collectives of one operation,
shape and number of slices share one schedule, so that a large job needs few.

Shapes: G groups, C collectives, n members, R ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fabrictune.collectives.algorithms import Algorithm
from fabrictune.collectives.channels import over_channels
from fabrictune.collectives.request_matching import Batch, match_requests
from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import CommTrace, Operation

MAX_CACHED = 64
MAX_CACHED_MESSAGES = 1_000_000  # of one schedule
MAX_MESSAGES = 30_000_000  # at some 200 bytes each while they are made


@dataclass(frozen=True, kw_only=True)
class Slicing:
    """Into how many channels a buffer is cut, and into slices of at most how many bytes a channel's share."""

    num_channels: int = 1
    slice_bytes: int | None = None
    max_slices: int = 1024

    def num_slices(self, num_bytes: IntArray, num_parts: int) -> IntArray:
        """Return the slices of one part of each of several buffers."""
        if self.slice_bytes is None:
            return np.ones_like(num_bytes)
        share = -(-num_bytes // (num_parts * self.num_channels))
        return np.clip(-(-share // self.slice_bytes), 1, self.max_slices)


@dataclass(frozen=True, kw_only=True)
class CollectivePlan:
    """A batch of collectives and the schedule that all of them follow."""

    batch: Batch
    schedule: Schedule


def make_plans(
    trace: CommTrace, host_R: IntArray, algorithm: Algorithm, slicing: Slicing, *, is_written_out: bool = True
) -> list[CollectivePlan]:
    """Return a plan for every collective of a trace; raises TraceError for requests that do not meet.

    Where the collectives are to be written out, all their messages count against MAX_MESSAGES; else each schedule's.
    """
    local_size_G = np.array([local_size(group, host_R) for group in trace.groups], np.int64)
    batches = match_requests(trace)
    num_messages = [
        _most_messages(algorithm, batch) * slicing.num_channels * (len(batch.group_C) if is_written_out else 1)
        for batch in batches
    ]
    refuse_too_many(sum(num_messages) if is_written_out else max(num_messages, default=0))
    return [
        plan
        for batch in batches
        for shaped in _split(batch, local_size_G[batch.group_C])
        for plan in _plans(
            shaped, int(local_size_G[shaped.group_C[0]]), algorithm, slicing, is_written_out=is_written_out
        )
    ]


def refuse_too_many(num_messages: int) -> None:
    """Raise TraceError before memory runs out."""
    if num_messages > MAX_MESSAGES:
        raise TraceError(
            Mistake(
                where="communication trace",
                found=f"collectives of up to {num_messages:,} messages in all",
                allowed=f"{MAX_MESSAGES:,}",
                next_step="take fewer steps or groups, smaller groups, fewer channels or larger slices",
            )
        )


def local_size(group: Sequence[int], host_R: IntArray) -> int:
    """Return how many neighbours of a group share each host; 1 where hosts have unequal numbers or come again."""
    host_n = host_R[np.asarray(group, np.int64)]
    begins = np.flatnonzero(np.concatenate([[True], np.diff(host_n) != 0]))
    lengths = np.diff(np.append(begins, len(host_n)))
    is_regular = (lengths == lengths[0]).all() and len(np.unique(host_n[begins])) == len(begins)
    return int(lengths[0]) if is_regular else 1


def _plans(
    batch: Batch, size: int, algorithm: Algorithm, slicing: Slicing, *, is_written_out: bool
) -> list[CollectivePlan]:
    is_pair = batch.operation == Operation.SEND
    shape = GroupShape(num_members=batch.num_members, local_size=1 if is_pair else size)
    is_kept = _most_messages(algorithm, batch) <= MAX_CACHED_MESSAGES
    base = (_base if is_kept else _base.__wrapped__)(algorithm, batch.operation, shape)
    num_slices_C = slicing.num_slices(batch.bytes_C, base.num_parts)
    copies = num_slices_C.sum() if is_written_out else num_slices_C.max(initial=0)
    refuse_too_many(len(base) * slicing.num_channels * int(copies))
    return [_plan(base, part, shape, slicing) for part in _split(batch, num_slices_C)]


def _plan(base: Schedule, batch: Batch, shape: GroupShape, slicing: Slicing) -> CollectivePlan:
    """Return the plan of collectives of as many slices each."""
    num_slices = int(slicing.num_slices(batch.bytes_C[:1], base.num_parts)[0])
    schedule = over_channels(base, batch.operation, shape, num_channels=slicing.num_channels, num_slices=num_slices)
    return CollectivePlan(batch=batch, schedule=schedule)


def _most_messages(algorithm: Algorithm, batch: Batch) -> int:
    return algorithm.implementation_of(batch.operation).most_messages(batch.num_members)


@lru_cache(maxsize=MAX_CACHED)
def _base(algorithm: Algorithm, operation: Operation, shape: GroupShape) -> Schedule:
    return algorithm.implementation_of(operation).make_schedule(shape)


def _split(batch: Batch, key_C: IntArray) -> list[Batch]:
    """Return the collectives of equal keys together."""
    return [
        Batch(
            operation=batch.operation,
            group_C=batch.group_C[key_C == key],
            bytes_C=batch.bytes_C[key_C == key],
            request_Cn=batch.request_Cn[key_C == key],
        )
        for key in np.unique(key_C)
    ]
