"""Totals of a trace: requests and bytes by operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from fabrictune.foundation.job_traces import ALONE, JobTrace
from fabrictune.foundation.traces import CommTrace, Operation


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over all ranks."""

    num_ranks: int
    num_groups: int
    num_requests: Mapping[Operation, int]
    num_bytes: Mapping[Operation, int]

    @classmethod
    def of(cls, trace: CommTrace | JobTrace) -> Self:
        """Add up a trace, or a job of which each template is that of many ranks."""
        if isinstance(trace, CommTrace):
            return cls._add_up(trace, len(np.unique(trace.rank_N)), len(trace.groups), num_instances=1)
        layout, axes = trace.layout, set(trace.templates.axis_N)
        num_groups = sum(layout.world_size // layout.degree(axis) for axis in layout.axes if axis in axes)
        num_groups += layout.world_size if ALONE in axes else 0
        return cls._add_up(trace.templates, layout.world_size, num_groups, num_instances=trace.num_instances)

    @classmethod
    def _add_up(cls, rows: CommTrace, num_ranks: int, num_groups: int, *, num_instances: int) -> Self:
        is_one_ON = {Operation(operation): rows.operation_N == operation for operation in np.unique(rows.operation_N)}
        return cls(
            num_ranks=num_ranks,
            num_groups=num_groups,
            num_requests={operation: int(is_one_N.sum()) * num_instances for operation, is_one_N in is_one_ON.items()},
            num_bytes={
                operation: int(rows.bytes_N[is_one_N].sum()) * num_instances
                for operation, is_one_N in is_one_ON.items()
            },
        )
