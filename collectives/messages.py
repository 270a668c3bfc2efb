"""Messages between ranks: what every collective of a trace sends, step by step.

Every request becomes two rows that move nothing: *ready*, which waits for the requests it depends on and then for the
work before it, and *done*, which waits for every message to and from its rank. Between them lie the messages of its
collective; one leaves when both its ends are ready and what it passes on has arrived. A message between two ranks needs
its sender alone, since the receiver has a buffer for it.

The rows of one schedule are laid out once, as a template, and repeated for every collective that follows it, when
somebody reads them. A row knows its edge, its bytes and what it waits for; ranks, NICs and queue pairs are those of the
edge.

Shapes: N requests, C collectives of a batch, n members, M messages of a schedule, W rows of a collective, E edges, U
sizes, S sums, R rests of a division, D dependencies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.plans import CollectivePlan
from fabrictune.collectives.request_matching import Batch
from fabrictune.collectives.schedule import Schedule
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import CommTrace, Dependencies, Operation


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Edges of one schedule: who sends to whom on which channel, in that order of channel, sender and receiver."""

    sender_E: IntArray  # member
    receiver_E: IntArray  # member
    channel_E: IntArray
    edge_M: IntArray  # of each message


@dataclass(frozen=True, kw_only=True)
class Block:
    """The rows of every collective of a batch, C times W; each W are M messages and then n done rows.

    A done row lies on an edge of its own from its member to itself, after those of the schedule.
    """

    batch: Batch
    first_row: int  # of the trace
    edges: Edges
    size_C: IntArray  # which of U sizes each collective has
    bytes_UE: IntArray  # in all, of the edges of the schedule
    edge_W: IntArray  # with those of done rows
    bytes_UW: IntArray
    has_empty: bool  # messages of no bytes
    wait_offset_W1: IntArray
    wait_node_D: IntArray  # n ready rows, then M messages

    @property
    def num_rows(self) -> int:
        """C times W."""
        return len(self.size_C) * len(self.edge_W)

    @property
    def num_messages(self) -> int:
        """C times M."""
        return len(self.size_C) * len(self.edges.edge_M)

    def rectangles(self, begin: int, end: int) -> Iterator[tuple[slice, slice]]:
        """Yield the collectives, and the rows of each, that lie in rows `begin` to `end` - 1 of the trace."""
        width = len(self.edge_W)
        begin, end = max(begin - self.first_row, 0), min(end - self.first_row, self.num_rows)
        while begin < end:
            collective, row = divmod(begin, width)
            if row == 0 and end - begin >= width:
                count, rows = (end - begin) // width, slice(0, width)
            else:
                count, rows = 1, slice(row, min(width, row + end - begin))
            yield slice(collective, collective + count), rows
            begin += count * (rows.stop - rows.start)

    def bytes_of(self, collectives: slice, rows: slice) -> IntArray:
        """Return the bytes of the rows of some collectives, one collective after another."""
        return self.bytes_UW[self.size_C[collectives], rows].ravel()

    def of_edges(self, value_CE: IntArray, collectives: slice, rows: slice) -> IntArray:
        """Return the value of each row's edge."""
        return value_CE[collectives].take(self.edge_W[rows], axis=1).ravel()

    def waits_of(self, collectives: slice, rows: slice) -> Dependencies:
        """Return what the rows of some collectives wait for: offsets from 0, rows of the trace."""
        offset_W1 = self.wait_offset_W1[rows.start : rows.stop + 1]
        node_D = self.wait_node_D[offset_W1[0] : offset_W1[-1]]
        request_Cn = self.batch.request_Cn[collectives]
        first_C = self.first_row + np.arange(collectives.start, collectives.stop) * len(self.edge_W)
        num_members = self.batch.num_members
        row_CD = first_C[:, None] + (node_D - num_members)
        is_ready_D = node_D < num_members
        row_CD[:, is_ready_D] = request_Cn[:, node_D[is_ready_D]]
        num_waits = np.tile(np.diff(offset_W1), len(first_C))
        return Dependencies(offset_N1=np.concatenate([[0], np.cumsum(num_waits)]), row_D=row_CD.ravel())


def blocks_of(num_requests: int, plans: Sequence[CollectivePlan]) -> list[Block]:
    """Return the rows of all collectives, which follow the requests becoming ready."""
    blocks: list[Block] = []
    next_row = num_requests
    for plan in plans:
        blocks.append(_block(plan, next_row))
        next_row += blocks[-1].num_rows
    return blocks


def ready_waits(trace: CommTrace, blocks: Sequence[Block]) -> Dependencies:
    """Return what each request's ready row waits for: the done rows of the requests it depends on."""
    done_row_N = np.zeros(len(trace), np.int64)
    for block in blocks:
        request_Cn, width = block.batch.request_Cn, len(block.edge_W)
        end_C = block.first_row + (1 + np.arange(len(request_Cn))) * width
        done_row_N[request_Cn] = end_C[:, None] - block.batch.num_members + np.arange(block.batch.num_members)
    return Dependencies(offset_N1=trace.dependencies.offset_N1, row_D=done_row_N[trace.dependencies.row_D])


def edges_of(schedule: Schedule) -> Edges:
    """Return the edges of a schedule."""
    num_members = schedule.num_members
    pair_M = schedule.sender_M * num_members + schedule.receiver_M
    key_E, edge_M = np.unique(schedule.channel_M * num_members**2 + pair_M, return_inverse=True)
    channel_E, pair_E = np.divmod(key_E, num_members**2)
    sender_E, receiver_E = np.divmod(pair_E, num_members)
    return Edges(sender_E=sender_E, receiver_E=receiver_E, channel_E=channel_E, edge_M=edge_M.ravel())


def bytes_of_edges(edges: Edges, schedule: Schedule, num_bytes_C: IntArray, sum_C: IntArray) -> IntArray:
    """Return the bytes of each edge, shape (S, E), of collectives of which sum `sum_C` counts each, from 0 on.

    Every chunk has the whole quotient of a size by the parts, and those of the first parts a byte of the rest more.
    """
    num_sums = int(sum_C.max(initial=-1)) + 1
    whole_C, rest_C = np.divmod(num_bytes_C, schedule.num_parts)
    whole_S = np.zeros(num_sums, np.int64)
    np.add.at(whole_S, sum_C, whole_C)
    rest_R, place_C = np.unique(rest_C, return_inverse=True)
    rest_RE = np.array([_sums(edges, schedule.bytes_M(rest)) for rest in rest_R.tolist()], np.int64)
    pair, count = np.unique(sum_C * max(1, len(rest_R)) + place_C.ravel(), return_counts=True)
    of_sum, of_rest = np.divmod(pair, max(1, len(rest_R)))
    bytes_SE = whole_S[:, None] * _sums(edges, schedule.bytes_M(schedule.num_parts))
    if len(pair):
        first_S = np.searchsorted(of_sum, np.arange(num_sums))
        bytes_SE += np.add.reduceat(count[:, None] * rest_RE[of_rest], first_S, axis=0)
    return bytes_SE


def _sums(edges: Edges, bytes_M: IntArray) -> IntArray:
    sums_E = np.zeros(len(edges.sender_E), np.int64)
    np.add.at(sums_E, edges.edge_M, bytes_M)
    return sums_E


def _block(plan: CollectivePlan, first_row: int) -> Block:
    batch, schedule = plan.batch, plan.schedule
    edges = edges_of(schedule)
    sizes, size_C = np.unique(batch.bytes_C, return_inverse=True)
    bytes_UM = schedule.bytes_M(sizes)
    member, num_edges = np.arange(batch.num_members), len(edges.sender_E)
    waits = _waits(schedule, is_buffered=batch.operation == Operation.SEND)
    return Block(
        batch=batch,
        first_row=first_row,
        edges=edges,
        size_C=size_C.ravel(),
        bytes_UE=bytes_of_edges(edges, schedule, sizes, np.arange(len(sizes))),
        edge_W=np.concatenate([edges.edge_M, num_edges + member]).astype(np.int32),
        has_empty=not bytes_UM.all(),
        bytes_UW=np.concatenate([bytes_UM, np.zeros((len(sizes), len(member)), np.int64)], axis=1),
        wait_offset_W1=waits.offset_N1,
        wait_node_D=waits.row_D.astype(np.int32),
    )


def _waits(schedule: Schedule, *, is_buffered: bool) -> Dependencies:
    """Return what each of M messages and n done rows waits for, by node: n ready rows, then M messages.

    A message that passes something on need not wait for its sender: what it passes on has already done so. Where the
    receiver is buffered it need not wait for that either.
    """
    num_messages, num_members = len(schedule), schedule.num_members
    message, member = np.arange(num_messages), np.arange(num_members)
    waits_M = np.diff(schedule.dependencies.offset_N1)
    begins = message[waits_M == 0]
    is_passed_on = np.zeros(num_messages, bool)
    is_passed_on[schedule.dependencies.row_D] = True
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
