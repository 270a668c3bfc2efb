"""Messages between ranks: every collective of a trace, written out step by step.

Every request becomes two rows that move nothing: *ready*, which waits for the requests it depends on and then for the
work before it, and *done*, which waits for every message to and from its rank. Between them lie the messages of its
collective; one leaves when both its ends are ready and what it passes on has arrived. A message between two ranks needs
its sender alone, since the receiver has a buffer for it.

The rows of one schedule are laid out once and repeated for every collective that follows it, so that the cost of a
large job is that of filling arrays.

Shapes: N requests, G groups, C collectives of a batch, n members, M messages of a schedule, R rows, D dependencies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.plans import CollectivePlan
from fabrictune.collectives.request_matching import Batch
from fabrictune.collectives.schedule import Schedule
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import CommTrace, Dependencies, Operation


@dataclass(frozen=True, kw_only=True)
class MessageTable:
    """R rows between ranks; one from a rank to itself moves nothing. The first N are the requests becoming ready."""

    request_R: IntArray  # the sender's row of the CommTrace
    group_R: IntArray
    channel_R: IntArray
    source_R: IntArray  # rank
    destination_R: IntArray  # rank
    bytes_R: IntArray
    delay_ps_R: IntArray
    dependencies: Dependencies

    def __len__(self) -> int:
        return len(self.request_R)


def messages_of(trace: CommTrace, plans: Sequence[CollectivePlan]) -> MessageTable:
    """Return every message of a trace whose collectives follow their plans' schedules."""
    blocks: list[IntArray] = []  # rows of each batch, shape (C, M + n): messages, then their members' done
    next_row = len(trace)
    for plan in plans:
        shape = (len(plan.batch.group_C), len(plan.schedule) + plan.batch.num_members)
        blocks.append(next_row + np.arange(shape[0] * shape[1]).reshape(shape))
        next_row += shape[0] * shape[1]
    parts = [_ready(trace, plans, blocks)]
    parts += [_collectives(trace, plan.batch, plan.schedule, block) for plan, block in zip(plans, blocks, strict=True)]
    return _concatenate(parts)


def _ready(trace: CommTrace, plans: Sequence[CollectivePlan], blocks: Sequence[IntArray]) -> MessageTable:
    """Return a row for each request that waits for the done rows of the requests it depends on."""
    done_row_N = np.zeros(len(trace), np.int64)
    for plan, block in zip(plans, blocks, strict=True):
        done_row_N[plan.batch.request_Cn] = block[:, -plan.batch.num_members :]
    return MessageTable(
        request_R=np.arange(len(trace)),
        group_R=trace.group_N,
        channel_R=np.zeros(len(trace), np.int64),
        source_R=trace.rank_N,
        destination_R=trace.rank_N,
        bytes_R=np.zeros(len(trace), np.int64),
        delay_ps_R=trace.compute_before_ps_N,
        dependencies=Dependencies(offset_N1=trace.dependencies.offset_N1, row_D=done_row_N[trace.dependencies.row_D]),
    )


def _collectives(trace: CommTrace, batch: Batch, schedule: Schedule, block: IntArray) -> MessageTable:
    """Return the rows of every collective of a batch."""
    member = np.arange(batch.num_members)
    sender_of_row = np.concatenate([schedule.sender_M, member])
    receiver_of_row = np.concatenate([schedule.receiver_M, member])
    bytes_CM = schedule.bytes_M(batch.bytes_C)
    channel_of_row = np.concatenate([schedule.channel_M, np.zeros_like(member)])
    template = _wait_template(schedule, is_buffered=batch.operation == Operation.SEND)
    row_of_node = np.concatenate([batch.request_Cn, block[:, : len(schedule)]], axis=1)
    num_waits = np.tile(np.diff(template.offset_N1), len(block))
    return MessageTable(
        request_R=batch.request_Cn[:, sender_of_row].ravel(),
        group_R=np.repeat(batch.group_C, block.shape[1]),
        channel_R=np.tile(channel_of_row, len(block)),
        source_R=trace.rank_N[batch.request_Cn][:, sender_of_row].ravel(),
        destination_R=trace.rank_N[batch.request_Cn][:, receiver_of_row].ravel(),
        bytes_R=np.concatenate([bytes_CM, np.zeros_like(batch.request_Cn)], axis=1).ravel(),
        delay_ps_R=np.zeros(block.size, np.int64),
        dependencies=Dependencies(
            offset_N1=np.concatenate([[0], np.cumsum(num_waits)]), row_D=row_of_node[:, template.row_D].ravel()
        ),
    )


def _wait_template(schedule: Schedule, *, is_buffered: bool) -> Dependencies:
    """Return what each of M messages and n done rows waits for, by node: n ready rows, then M messages.

    A message that passes something on need not wait for its sender: what it passes on has already done so. Where the
    receiver is buffered it need not wait for that either.
    """
    num_messages, num_members = len(schedule), schedule.num_members
    message, member = np.arange(num_messages), np.arange(num_members)
    waits_M = np.diff(schedule.dependencies.offset_N1)
    begins = message[waits_M == 0]
    is_passed_on = np.isin(message, schedule.dependencies.row_D)
    ends = message[~is_passed_on]
    waiting, node = (
        np.concatenate(columns)
        for columns in zip(
            (np.repeat(message, waits_M), num_members + schedule.dependencies.row_D),
            (begins, schedule.sender_M[begins]),
            (message[:0], schedule.receiver_M[:0]) if is_buffered else (message, schedule.receiver_M),
            (num_messages + schedule.sender_M, num_members + message),
            (num_messages + schedule.receiver_M[ends], num_members + ends),
            (num_messages + member, member),
            strict=True,
        )
    )
    num_waits = np.bincount(waiting, minlength=num_messages + num_members)
    return Dependencies(
        offset_N1=np.concatenate([[0], np.cumsum(num_waits)]), row_D=node[np.argsort(waiting, kind="stable")]
    )


def _concatenate(parts: Sequence[MessageTable]) -> MessageTable:
    """Return all rows in one table; dependencies already name rows of the whole."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("request_R", "group_R", "channel_R", "source_R", "destination_R", "bytes_R", "delay_ps_R")
    }
    num_waits = np.concatenate([np.diff(part.dependencies.offset_N1) for part in parts])
    dependencies = Dependencies(
        offset_N1=np.concatenate([[0], np.cumsum(num_waits)]),
        row_D=np.concatenate([part.dependencies.row_D for part in parts]),
    )
    return MessageTable(**columns, dependencies=dependencies)
