"""Communication volumes of one rank in a step, by axis and operation, from its planned requests."""

from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.bounds import bus_factor
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import Axis
from fabrictune.foundation.traces import Operation


@dataclass(frozen=True, kw_only=True)
class Volume:
    """The requests of one axis and operation that a rank makes in a step."""

    axis: Axis
    operation: Operation
    num_requests: int
    buffer_bytes: int  # nccl-tests' size
    sent_bytes: int  # that leave the GPU
    duration_ps: int  # one after another, at best


def sent_bytes(operation: Operation, num_ranks: int, num_bytes: int) -> int:
    """Return the least bytes that a rank sends for an operation on a buffer of `num_bytes`."""
    return 0 if operation == Operation.RECEIVE else round(num_bytes * bus_factor(operation, num_ranks))


def volumes_of_place(job: JobTrace, place: int, duration_ps_N: IntArray) -> list[Volume]:
    """Return the volumes of the ranks at a pipeline place; `duration_ps_N` are the durations of all requests."""
    rows = job.templates
    is_own_N = (rows.rank_N == job.layout.rank(tp=0, dp=0, pp=place)) & (rows.bytes_N > 0)
    volumes = []
    for axis in job.layout.axes:
        for operation in Operation:
            is_kind_N = is_own_N & job.is_along_N(axis) & (rows.operation_N == operation)
            if is_kind_N.any():
                num_bytes = int(rows.bytes_N[is_kind_N].sum())
                volumes.append(
                    Volume(
                        axis=axis,
                        operation=operation,
                        num_requests=int(np.count_nonzero(is_kind_N)),
                        buffer_bytes=num_bytes,
                        sent_bytes=sent_bytes(operation, job.layout.degree(axis), num_bytes),
                        duration_ps=int(duration_ps_N[is_kind_N].sum()),
                    )
                )
    return volumes
