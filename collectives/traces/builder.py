"""A CommTrace put together request by request."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


@dataclass(frozen=True, kw_only=True)
class TraceRow:
    """One row of a CommTrace; columns as there."""

    rank: int
    operation: Operation
    group: tuple[int, ...]  # ranks in ring order
    num_bytes: int
    peer: int = UNKNOWN
    compute_before_ps: int = 0
    waits: tuple[int, ...] = ()  # rows of the trace
    axis: str = ""
    tag: str = ""
    issue_ps: int = UNKNOWN
    complete_ps: int = UNKNOWN


def build_trace(requests: Sequence[TraceRow]) -> CommTrace:
    """Return the trace of requests, in order; groups are numbered as they first come. Raises TraceError."""
    groups = {group: number for number, group in enumerate(dict.fromkeys(request.group for request in requests))}

    def column(values: list[int]) -> np.ndarray:
        return np.array(values, np.int64)

    return CommTrace(
        groups=tuple(groups),
        rank_N=column([request.rank for request in requests]),
        operation_N=column([int(request.operation) for request in requests]),
        group_N=column([groups[request.group] for request in requests]),
        peer_N=column([request.peer for request in requests]),
        bytes_N=column([request.num_bytes for request in requests]),
        compute_before_ps_N=column([request.compute_before_ps for request in requests]),
        step_N=np.zeros(len(requests), np.int64),
        axis_N=tuple(request.axis for request in requests),
        policy_N=("none",) * len(requests),
        tag_N=tuple(request.tag for request in requests),
        dependencies=Dependencies.from_lists([request.waits for request in requests]),
        issue_ps_N=column([request.issue_ps for request in requests]),
        complete_ps_N=column([request.complete_ps for request in requests]),
    )
