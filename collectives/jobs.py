"""Whole jobs written down as communication traces, without running them."""

import numpy as np

from foundation.layout import Axis, ParallelLayout
from foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


def collective_step(
    layout: ParallelLayout, bytes_per_rank: int, *, operation: Operation = Operation.ALL_REDUCE, axis: Axis = "dp"
) -> CommTrace:
    """Return one collective of `bytes_per_rank` in every group along an axis, all at time 0; broadcasts from the first.

    Without further words it is a training step's gradient all-reduce.
    """
    groups = layout.groups(axis)
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
