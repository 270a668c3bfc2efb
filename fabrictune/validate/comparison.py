"""Comparison of the same collectives and steps measured and simulated.

A collective lasts from the moment its last member asks for it to the moment its last member is done, on either side. A
step lasts from its first collective's beginning to the last end in it; its work is the measured one on both sides.

Shapes: N requests, C collectives, R transfers, S steps.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.request_matching import match_requests
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.traces import CommTrace, Operation


@dataclass(frozen=True, kw_only=True)
class CollectiveTimes:
    """C collectives in order of time; a step's are those of one step."""

    step_C: IntArray
    operation_C: tuple[str, ...]
    bytes_C: IntArray
    first_C: IntArray  # row of the first member's request
    measured_begin_ps_C: IntArray
    measured_end_ps_C: IntArray
    simulated_begin_ps_C: IntArray
    simulated_end_ps_C: IntArray

    @property
    def measured_ps_C(self) -> IntArray:
        """How long each took."""
        return self.measured_end_ps_C - self.measured_begin_ps_C

    @property
    def simulated_ps_C(self) -> IntArray:
        """How long each took in the simulation."""
        return self.simulated_end_ps_C - self.simulated_begin_ps_C


def collective_times(trace: CommTrace, transfers: Columns, software_ps_N: IntArray) -> CollectiveTimes:
    """Return each collective of a measured trace with its simulation, given the simulator's table `transfers`.

    The first N transfers must be the requests becoming ready, as `collectives/expansion.py` has them, and what they
    take beside their messages is added to their ends. Transfers of later requests than the trace's are left out.
    """
    asked_ps_N = transfers["finish_ps"][: len(trace)]
    done_ps_N = np.zeros(len(trace), np.int64)
    is_own_R = transfers["operation"] < len(trace)
    np.maximum.at(done_ps_N, transfers["operation"][is_own_R], transfers["finish_ps"][is_own_R])
    done_ps_N = np.maximum(done_ps_N, asked_ps_N) + software_ps_N
    batches = match_requests(trace)
    operations = [Operation(batch.operation).name.lower() for batch in batches for _ in batch.bytes_C]
    first_C = np.concatenate([batch.request_Cn[:, 0] for batch in batches])
    order_C = np.argsort(trace.issue_ps_N[first_C], kind="stable")

    def last(time_ps_N: IntArray) -> IntArray:
        rows = [time_ps_N[batch.request_Cn].max(axis=1) for batch in batches]
        return np.asarray(np.concatenate(rows)[order_C], np.int64)

    return CollectiveTimes(
        step_C=trace.step_N[first_C][order_C],
        operation_C=tuple(operations[row] for row in order_C),
        bytes_C=trace.bytes_N[first_C][order_C],
        first_C=first_C[order_C],
        measured_begin_ps_C=last(trace.issue_ps_N),
        measured_end_ps_C=last(trace.complete_ps_N),
        simulated_begin_ps_C=last(asked_ps_N),
        simulated_end_ps_C=last(done_ps_N),
    )


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """S steps; the bytes are those of all their collectives."""

    step_S: IntArray
    bytes_S: IntArray
    measured_ps_S: IntArray
    simulated_ps_S: IntArray
    work_ps_S: IntArray  # measured: what the ranks, on average, do not wait for


def step_times(trace: CommTrace, times: CollectiveTimes) -> StepTimes:
    """Return the steps of a trace's collectives."""
    step_S, place_C = np.unique(times.step_C, return_inverse=True)

    def duration_ps_S(begin_ps_C: IntArray, end_ps_C: IntArray) -> IntArray:
        begin_ps_S = np.full(len(step_S), np.iinfo(np.int64).max)
        end_ps_S = np.zeros(len(step_S), np.int64)
        np.minimum.at(begin_ps_S, place_C, begin_ps_C)
        np.maximum.at(end_ps_S, place_C, end_ps_C)
        return np.asarray(end_ps_S - begin_ps_S, np.int64)

    def sum_S(place: IntArray, values: IntArray) -> IntArray:
        return np.asarray(np.bincount(place, weights=values, minlength=len(step_S)), np.int64)

    measured_ps_S = duration_ps_S(times.measured_begin_ps_C, times.measured_end_ps_C)
    num_ranks = len(np.unique(trace.rank_N))
    waited_ps_S = sum_S(np.searchsorted(step_S, trace.step_N), trace.exposed_wait_ps_N) // num_ranks
    return StepTimes(
        step_S=step_S,
        bytes_S=sum_S(place_C, times.bytes_C),
        measured_ps_S=measured_ps_S,
        simulated_ps_S=duration_ps_S(times.simulated_begin_ps_C, times.simulated_end_ps_C),
        work_ps_S=np.maximum(measured_ps_S - waited_ps_S, 0),
    )
