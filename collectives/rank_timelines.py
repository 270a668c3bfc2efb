"""Timelines of ranks: their work, and the communication that they wait for, by axis and step.

A rank works before a request, for `compute_before_ps` until it issues it. Between its work it waits. *Exposed* is the
time it waits for a request: of the requests that its next work depends on, in the order in which the trace names them,
each has the time from the end of the one before it to its own completion. That is what a ledger measures
(`trainer_probe/ledger.py`), which names requests in the order of their waits. At the end of a trace a rank waits for
the requests that nothing depends on, in the order in which they complete.

A step ends with the last of its requests, and lasts from the end of the step before it.

Shapes: N requests, R ranks, S steps, A axes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import CommTrace


@dataclass(frozen=True, kw_only=True)
class RankTimelines:
    """The time of each rank in each step; ranks, steps and axes in ascending order."""

    rank_R: IntArray
    step_S: IntArray
    axes: tuple[str, ...]  # of requests that move something between ranks
    work_ps_RS: IntArray
    exposed_ps_RSA: IntArray
    end_ps_RS: IntArray  # of the rank's last request of the step, 0 where it makes none

    @cached_property
    def step_end_ps_S(self) -> IntArray:
        """When the last rank ends each step; steps end in order."""
        return np.asarray(np.maximum.accumulate(self.end_ps_RS.max(axis=0)), np.int64)

    @property
    def step_ps_S(self) -> IntArray:
        """How long each step lasts, of all ranks."""
        return np.diff(self.step_end_ps_S, prepend=0)

    @property
    def duration_ps_RS(self) -> IntArray:
        """How long each step lasts on each rank, from the end of its step before."""
        return np.diff(np.maximum.accumulate(self.end_ps_RS, axis=1), axis=1, prepend=0)


def rank_timelines(trace: CommTrace, issue_ps_N: IntArray, complete_ps_N: IntArray) -> RankTimelines:
    """Return the timelines of a trace's ranks, given when each request is issued and complete, from time 0 on."""
    rank_R, place_N = np.unique(trace.rank_N, return_inverse=True)
    step_S, step_N = np.unique(trace.step_N, return_inverse=True)
    axis_N = Texts.of(trace.axis_N)
    axes = tuple(sorted(set(axis_N.vocabulary) - {ALONE}))
    axis_of_text = np.array([axes.index(axis) if axis in axes else len(axes) for axis in axis_N.vocabulary], np.int64)
    work_ps_RS = np.zeros((len(rank_R), len(step_S)), np.int64)
    exposed_ps_RSA = np.zeros((*work_ps_RS.shape, len(axes) + 1), np.int64)
    end_ps_RS = np.zeros_like(work_ps_RS)
    np.maximum.at(end_ps_RS, (place_N, step_N), complete_ps_N)
    begin_ps_N = issue_ps_N - trace.compute_before_ps_N
    order_N = np.lexsort((issue_ps_N, begin_ps_N, place_N))
    place_of_axis_N = axis_of_text[axis_N.place_N]
    for rows in np.split(order_N, np.flatnonzero(np.diff(place_N[order_N])) + 1):
        if not len(rows):
            continue
        rank = place_N[rows[0]]
        free_ps_R = np.concatenate([[0], np.maximum.accumulate(issue_ps_N[rows])[:-1]])  # end of the work before
        worked_ps_R = np.maximum(issue_ps_N[rows] - np.maximum(begin_ps_N[rows], free_ps_R), 0)
        np.add.at(work_ps_RS[rank], step_N[rows], worked_ps_R)
        for request, wait_ps in _waits(trace, rows, begin_ps_N, free_ps_R, complete_ps_N):
            exposed_ps_RSA[rank, step_N[request], place_of_axis_N[request]] += wait_ps
        last_ps = int(issue_ps_N[rows].max())
        for request, wait_ps in _last_waits(trace, rows, last_ps, complete_ps_N):
            exposed_ps_RSA[rank, step_N[request], place_of_axis_N[request]] += wait_ps
    return RankTimelines(
        rank_R=rank_R,
        step_S=step_S,
        axes=axes,
        work_ps_RS=work_ps_RS,
        exposed_ps_RSA=exposed_ps_RSA[:, :, : len(axes)],
        end_ps_RS=end_ps_RS,
    )


def _waits(
    trace: CommTrace, rows: IntArray, begin_ps_N: IntArray, free_ps_R: IntArray, complete_ps_N: IntArray
) -> Iterator[tuple[int, int]]:
    """Yield requests that a rank waits for between its work, and how long."""
    for place in np.flatnonzero(begin_ps_N[rows] > free_ps_R).tolist():
        row, now_ps = int(rows[place]), int(free_ps_R[place])
        for request in trace.dependencies.of(row).tolist():
            if complete_ps_N[request] > now_ps:
                yield request, int(complete_ps_N[request]) - now_ps
                now_ps = int(complete_ps_N[request])


def _last_waits(trace: CommTrace, rows: IntArray, last_ps: int, complete_ps_N: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the requests that a rank waits for after its work, and how long."""
    late = rows[complete_ps_N[rows] > last_ps]
    for request in late[np.argsort(complete_ps_N[late], kind="stable")].tolist():
        yield request, int(complete_ps_N[request]) - last_ps
        last_ps = int(complete_ps_N[request])
