"""Whole jobs written down as communication traces, without running them."""

import numpy as np

from foundation.layout import ParallelLayout
from foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


def data_parallel_step(layout: ParallelLayout, bytes_per_rank: int) -> CommTrace:
    """Return one step's gradient all-reduce of `bytes_per_rank` in every data-parallel group, all at time 0."""
    groups = layout.groups("dp")
    num_rows = groups.size
    zeros = np.zeros(num_rows, np.int64)
    return CommTrace(
        groups=tuple(tuple(int(rank) for rank in group) for group in groups),
        rank_N=groups.ravel(),
        operation_N=zeros + Operation.ALL_REDUCE,
        group_N=np.repeat(np.arange(len(groups)), groups.shape[1]),
        peer_N=zeros + UNKNOWN,
        bytes_N=zeros + bytes_per_rank,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=("dp",) * num_rows,
        policy_N=("none",) * num_rows,
        tag_N=("gradients",) * num_rows,
        dependencies=Dependencies.none(num_rows),
    )
