"""Channels and slices: one collective as several that share its buffer, as NCCL runs it.

Each channel takes an equal share of every chunk, on connections of its own. Where a group has several members a host,
channel c numbers them from the c-th on, so that every channel enters and leaves a host at another GPU, and with it on
another rail. A channel's share is cut again into slices, which follow one another through the same connections: a
member passes on a slice while the next is on its way to it. A channel has buffers for eight slices: a member begins
another when it has done with the eighth before.

Source: NCCL, NCCL_MIN_NCHANNELS, NCCL_BUFFSIZE and NCCL_STEPS; Hu et al., "Demystifying NCCL", Hot Interconnects 2025.

Shapes: n members, K chunks, M messages.
"""

from dataclasses import replace

import numpy as np

from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import Dependencies, Operation

WINDOW = 8  # slices of a channel under way at once: NCCL_STEPS


def over_channels(
    schedule: Schedule, operation: Operation, shape: GroupShape, *, num_channels: int, num_slices: int
) -> Schedule:
    """Return a schedule repeated for every slice of every channel; slices of one step stand in order."""
    if num_channels == num_slices == 1:
        return schedule
    copies = num_channels * num_slices
    num_messages = len(schedule)
    channel_X = np.arange(copies) % num_channels
    is_rooted = operation in (Operation.BROADCAST, Operation.SEND)  # place 0 is the root in every channel
    member_Xn = _member_of_place(shape, np.zeros_like(channel_X) if is_rooted else channel_X)
    chunk_XK = _chunks(operation, member_Xn, len(schedule.part_K)) * copies + np.arange(copies)[:, None]
    slice_X = np.arange(copies) // num_channels
    lag = -(-(int(schedule.step_M.max(initial=0)) + 1) // WINDOW)
    step_XM = schedule.step_M + lag * slice_X[:, None]
    order = np.argsort(step_XM.ravel(), kind="stable")
    copy_E, place_E, chunk_offset_M1 = _repeat(schedule.chunk_offset_M1, order)
    row_of_copy = np.argsort(order)
    return replace(
        schedule,
        num_parts=schedule.num_parts * copies,
        part_K=(schedule.part_K[:, None] * copies + np.arange(copies)).ravel(),
        step_M=step_XM.ravel()[order],
        sender_M=member_Xn[:, schedule.sender_M].ravel()[order],
        receiver_M=member_Xn[:, schedule.receiver_M].ravel()[order],
        chunk_offset_M1=chunk_offset_M1,
        chunk_E=chunk_XK[copy_E, schedule.chunk_E[place_E]],
        is_reduced_M=np.tile(schedule.is_reduced_M, copies)[order],
        channel_M=np.repeat(channel_X, num_messages)[order],
        dependencies=_waits(schedule, num_channels, slice_X, row_of_copy),
    )


def _waits(schedule: Schedule, num_channels: int, slice_X: IntArray, row_of_copy: IntArray) -> Dependencies:
    """Return what the copies' messages wait for: their own copy's, and the first ones for the slice a window before."""
    num_messages, copies = len(schedule), len(slice_X)
    own_M = np.diff(schedule.dependencies.offset_N1)
    waiting = [np.repeat(np.arange(num_messages), own_M)[None, :] + num_messages * np.arange(copies)[:, None]]
    row = [schedule.dependencies.row_D[None, :] + num_messages * np.arange(copies)[:, None]]
    last_n = np.full(schedule.num_members, -1)
    last_n[schedule.receiver_M] = np.arange(num_messages)  # the last to come to each member
    first = np.flatnonzero((own_M == 0) & (last_n[schedule.sender_M] >= 0))
    late = np.flatnonzero(slice_X >= WINDOW)
    waiting.append(first[None, :] + num_messages * late[:, None])
    row.append(last_n[schedule.sender_M[first]][None, :] + num_messages * (late - WINDOW * num_channels)[:, None])
    waiting_D, row_D = (row_of_copy[np.concatenate([part.ravel() for part in parts])] for parts in (waiting, row))
    order = np.lexsort((row_D, waiting_D))
    counts = np.bincount(waiting_D, minlength=copies * num_messages)
    return Dependencies(offset_N1=np.concatenate([[0], np.cumsum(counts)]), row_D=row_D[order])


def _member_of_place(shape: GroupShape, channel_X: IntArray) -> IntArray:
    """Return which member takes each place of the schedule in each copy, shape (X, n)."""
    host, local = np.divmod(np.arange(shape.num_members), shape.local_size)
    return np.asarray(host * shape.local_size + (local + channel_X[:, None]) % shape.local_size)


def _chunks(operation: Operation, member_Xn: IntArray, num_chunks: int) -> IntArray:
    """Return the chunk that each chunk of the schedule becomes where members change places, shape (X, K)."""
    num_members = member_Xn.shape[1]
    if operation in (Operation.REDUCE_SCATTER, Operation.ALL_GATHER):
        return member_Xn
    if operation == Operation.ALL_TO_ALL:
        return np.asarray(member_Xn[:, :, None] * num_members + member_Xn[:, None, :]).reshape(len(member_Xn), -1)
    return np.broadcast_to(np.arange(num_chunks), (len(member_Xn), num_chunks))


def _repeat(offset_M1: IntArray, order: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return, for every entry of the ragged rows of copied messages in a new order, its copy and its place in one copy.

    `order` lists rows as copy * M + message. Also returns the offsets of the new rows.
    """
    num_messages = len(offset_M1) - 1
    copy, message = np.divmod(order, max(num_messages, 1))
    length = np.diff(offset_M1)[message]
    offset = np.concatenate([[0], np.cumsum(length)])
    place = np.arange(offset[-1]) - np.repeat(offset[:-1] - offset_M1[:-1][message], length)
    return np.repeat(copy, length), place, offset
