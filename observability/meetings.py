"""Meetings: the requests that are one collective, or one message, and which of them need which.

A request that moves the data of its rank is *needed* by the others: none of those that *need* it ends before it is
issued. A message's send is needed by its receive, a broadcast's root by its group, and in other collectives each
request by each.

Shapes: Q requests, M meetings, G groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.traces import UNKNOWN, Operation


@dataclass(frozen=True, kw_only=True)
class Meetings:
    """The meeting of each request, and what it has to do in it."""

    meeting_Q: IntArray
    is_needed_Q: BoolArray
    needs_Q: BoolArray
    is_whole_M: BoolArray  # whether all its members are here

    @property
    def num_meetings(self) -> int:
        """M."""
        return len(self.is_whole_M)


def meet(
    *,
    groups: Sequence[Sequence[int]],
    group_Q: IntArray,
    operation_Q: IntArray,
    rank_Q: IntArray,
    peer_Q: IntArray,
    step_Q: IntArray,
    sequence_Q: IntArray,
) -> Meetings:
    """Return the meetings of requests with these columns of `Spans`."""
    is_send_Q, is_receive_Q = operation_Q == Operation.SEND, operation_Q == Operation.RECEIVE
    is_message_Q = is_send_Q | is_receive_Q
    sender_Q = np.where(is_send_Q, rank_Q, np.where(is_receive_Q, peer_Q, UNKNOWN))
    receiver_Q = np.where(is_send_Q, peer_Q, np.where(is_receive_Q, rank_Q, UNKNOWN))
    keys = (step_Q, group_Q, sequence_Q, sender_Q, receiver_Q)
    order_Q = np.lexsort(keys)
    is_new_Q = np.ones(len(order_Q), bool)
    is_new_Q[1:] = np.any([np.diff(key[order_Q]) != 0 for key in keys], axis=0)
    meeting_Q = np.empty(len(order_Q), np.int64)
    meeting_Q[order_Q] = np.cumsum(is_new_Q) - 1
    num_members_G = np.array([len(group) for group in groups], np.int64)
    num_expected_M = np.where(is_message_Q, 2, num_members_G[group_Q])[order_Q[is_new_Q]]
    is_root_Q = (operation_Q == Operation.BROADCAST) & (peer_Q == rank_Q)
    is_led_Q = (operation_Q == Operation.BROADCAST) & (peer_Q != rank_Q)
    return Meetings(
        meeting_Q=meeting_Q,
        is_needed_Q=~is_receive_Q & ~is_led_Q,
        needs_Q=~is_send_Q & ~is_root_Q,
        is_whole_M=np.bincount(meeting_Q, minlength=len(num_expected_M)) == num_expected_M,
    )
