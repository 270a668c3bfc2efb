"""Communication traces of whole jobs, written down without running them."""

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


def collective_step(
    layout: ParallelLayout, bytes_per_rank: int, *, operation: Operation = Operation.ALL_REDUCE, axis: Axis = "dp"
) -> CommTrace:
    """Return one collective of `bytes_per_rank` in every group along an axis, all at time 0; broadcasts from the first.

    Without further words it is a training step's gradient all-reduce. A SEND goes from every rank to the next of its
    group, the last one's to the first.
    """
    groups = layout.groups(axis)
    if operation == Operation.SEND:
        return _sends_to_next(groups, bytes_per_rank, axis)
    num_rows = groups.size
    zeros = np.zeros(num_rows, np.int64)
    is_rooted = operation == Operation.BROADCAST
    return CommTrace(
        groups=tuple(tuple(int(rank) for rank in group) for group in groups),
        rank_N=groups.ravel(),
        operation_N=zeros + operation,
        group_N=np.repeat(np.arange(len(groups)), groups.shape[1]),
        peer_N=np.repeat(groups[:, 0], groups.shape[1]) if is_rooted else zeros + UNKNOWN,
        bytes_N=zeros + bytes_per_rank,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=(axis,) * num_rows,
        policy_N=("none",) * num_rows,
        tag_N=("gradients" if operation == Operation.ALL_REDUCE else operation.name.lower(),) * num_rows,
        dependencies=Dependencies.none(num_rows),
    )


def _sends_to_next(groups: IntArray, num_bytes: int, axis: Axis) -> CommTrace:
    """Return a send and a receive of every rank; none where a group has one member."""
    groups = groups if groups.shape[1] > 1 else groups[:0]
    rank_N = np.repeat(groups.ravel(), 2)
    peers = np.stack([np.roll(groups, -1, axis=1), np.roll(groups, 1, axis=1)], axis=2)
    zeros = np.zeros(len(rank_N), np.int64)
    return CommTrace(
        groups=tuple(tuple(int(rank) for rank in group) for group in groups),
        rank_N=rank_N,
        operation_N=np.tile([Operation.SEND, Operation.RECEIVE], len(rank_N) // 2).astype(np.int64),
        group_N=np.repeat(np.arange(len(groups)), 2 * groups.shape[1]),
        peer_N=peers.ravel(),
        bytes_N=zeros + num_bytes,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=(axis,) * len(rank_N),
        policy_N=("none",) * len(rank_N),
        tag_N=("send",) * len(rank_N),
        dependencies=Dependencies.none(len(rank_N)),
    )
