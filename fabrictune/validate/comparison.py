"""Comparison of the same collectives measured and simulated.

A collective lasts from the moment its last member asks for it to the moment its last member is done, on either side.

Shapes: N requests, C collectives, R transfers.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.request_matching import match_requests
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.traces import CommTrace, Operation


@dataclass(frozen=True, kw_only=True)
class CollectiveComparison:
    """One row for each collective, in order of step and time."""

    step_C: IntArray
    operation_C: tuple[str, ...]
    bytes_C: IntArray
    measured_ps_C: IntArray
    simulated_ps_C: IntArray

    def table(self) -> Columns:
        """Return the columns of the record's table `comparison`; `ratio` is simulated over measured."""
        return {
            "step": self.step_C,
            "operation": np.array(self.operation_C),
            "bytes": self.bytes_C,
            "measured_ps": self.measured_ps_C,
            "simulated_ps": self.simulated_ps_C,
            "ratio": self.simulated_ps_C / self.measured_ps_C,
        }


def compare_collectives(trace: CommTrace, transfers: Columns) -> CollectiveComparison:
    """Return each collective of a measured trace with its simulation, given the simulator's table `transfers`.

    The first N transfers must be the requests becoming ready, as `collectives/expansion.py` has them.
    """
    asked_ps_N = transfers["finish_ps"][: len(trace)]
    done_ps_N = np.zeros(len(trace), np.int64)
    np.maximum.at(done_ps_N, transfers["operation"], transfers["finish_ps"])
    batches = match_requests(trace)
    operations = [Operation(batch.operation).name.lower() for batch in batches for _ in batch.bytes_C]
    first_C = np.concatenate([batch.request_Cn[:, 0] for batch in batches])
    order_C = np.argsort(trace.issue_ps_N[first_C], kind="stable")

    def durations(begin_N: IntArray, end_N: IntArray) -> IntArray:
        rows = [end_N[b.request_Cn].max(axis=1) - begin_N[b.request_Cn].max(axis=1) for b in batches]
        return np.asarray(np.concatenate(rows)[order_C], np.int64)

    return CollectiveComparison(
        step_C=trace.step_N[first_C][order_C],
        operation_C=tuple(operations[row] for row in order_C),
        bytes_C=trace.bytes_N[first_C][order_C],
        measured_ps_C=durations(trace.issue_ps_N, trace.complete_ps_N),
        simulated_ps_C=durations(asked_ps_N, done_ps_N),
    )
