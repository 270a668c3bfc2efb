"""Spans: what the ranks of a job did from when to when, as arrays.

A span is a pass, a request, or other work of one rank. Times are nanoseconds since one origin of the job, by each
rank's clock moved onto rank 0's; `clock_error_ns_R` bounds what was left between the two when the clocks were compared.

The requests of one operation of a group have one sequence number; those of messages are counted for each pair of a
sender and a receiver, on both sides in order, so that a send and its receive have the same one.

Shapes: N spans, R ranks.
"""

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.layout import ParallelLayout


class SpanKind(IntEnum):
    """What a rank did."""

    STEP = 0
    FORWARD = 1
    BACKWARD = 2
    WEIGHT_GRADIENT = 3  # of zero-bubble schedules, which divide the backward pass
    REQUEST = 4
    LOADER = 5
    OPTIMIZER = 6
    CHECKPOINT = 7
    GARBAGE_COLLECTION = 8


@dataclass(frozen=True, kw_only=True)
class Spans:
    """The spans of a job, rank after rank, by start within a rank. What a span does not have is UNKNOWN (-1) or ""."""

    layout: ParallelLayout
    groups: tuple[tuple[int, ...], ...]  # ranks of each group, as in `CommTrace`
    host_R: tuple[str, ...]
    clock_error_ns_R: IntArray
    num_dropped_R: IntArray  # spans that a bound on size left out
    rank_N: IntArray
    step_N: IntArray
    kind_N: IntArray  # SpanKind
    operation_N: IntArray  # of a request, as in `CommTrace`
    tag_N: tuple[str, ...]  # of a request what it is for, as in `CommTrace`
    axis_N: tuple[str, ...]
    group_N: IntArray
    sequence_N: IntArray  # of a request in its group
    peer_N: IntArray
    micro_batch_N: IntArray
    chunk_N: IntArray  # model chunk of an interleaved pipeline
    bytes_N: IntArray
    issue_ns_N: IntArray  # of a request; start elsewhere
    start_ns_N: IntArray  # of a request: its wait's begin
    end_ns_N: IntArray

    def __len__(self) -> int:
        return len(self.rank_N)

    def where(self, is_kept_N: BoolArray) -> "Spans":
        """Return the spans that are kept, in the same order."""
        rows = np.flatnonzero(is_kept_N)

        def kept(values: IntArray | tuple[str, ...]) -> Any:
            return tuple(map(values.__getitem__, rows.tolist())) if isinstance(values, tuple) else values[rows]

        columns = (column.name for column in fields(self) if column.name.endswith("_N"))
        return replace(self, **{name: kept(getattr(self, name)) for name in columns})
