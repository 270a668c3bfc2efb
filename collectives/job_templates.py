"""Templates of a trace in which ranks at one place of the pipeline ask for the same, each of its own groups.

They are taken from the first rank of each place, written out for all, and compared with the trace, row by row.
"""

from typing import Any

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import CommTrace, Dependencies

_COMPARED = ("operation_N", "peer_N", "bytes_N", "compute_before_ps_N")


def job_of(trace: CommTrace, layout: ParallelLayout) -> JobTrace:
    """Return the job of which a trace is written out; raises TraceError where it is none of this layout."""
    places = [layout.rank(tp=0, dp=0, pp=place) for place in range(layout.pp)]
    rows = np.concatenate([np.flatnonzero(trace.rank_N == rank) for rank in places])
    job = JobTrace(layout=layout, templates=_taken(trace, rows))
    _require_same(trace, job.written_out())
    return job


def _taken(trace: CommTrace, row_T: IntArray) -> CommTrace:
    """Return some rows of a trace, which wait for one another alone."""
    new_N = np.full(len(trace), -1, np.int64)
    new_N[row_T] = np.arange(len(row_T))
    waits = [new_N[trace.dependencies.of(row)].tolist() for row in row_T.tolist()]
    if any(row < 0 for rows in waits for row in rows):
        raise _not_alike("a request that waits for another rank's")
    columns: dict[str, Any] = {}
    for name, values in vars(trace).items():
        if name.endswith("_N"):
            columns[name] = values[row_T] if isinstance(values, np.ndarray) else Texts.of(values).take(row_T)
    return CommTrace(groups=trace.groups, dependencies=Dependencies.from_lists(waits), notes=trace.notes, **columns)


def _require_same(trace: CommTrace, job: CommTrace) -> None:
    """Raise TraceError for the first request in which a trace differs from a job."""
    if not np.array_equal(np.sort(trace.rank_N), job.rank_N):
        raise _not_alike("another number of requests from rank to rank")
    order_N = np.argsort(trace.rank_N, kind="stable")
    for name in _COMPARED:
        _require_equal(getattr(trace, name)[order_N], getattr(job, name), order_N, name.removesuffix("_N"))
    number = {group: index for index, group in enumerate(job.groups)}
    group_G = np.array([number.get(group, -1) for group in trace.groups], np.int64)
    _require_equal(group_G[trace.group_N[order_N]], job.group_N, order_N, "group")
    place_N = np.empty(len(trace), np.int64)
    place_N[order_N] = np.arange(len(trace))
    for place, row in enumerate(order_N.tolist()):
        if set(place_N[trace.dependencies.of(row)].tolist()) != set(job.dependencies.of(place).tolist()):
            raise _not_alike(f"row {row}, which waits for other requests than the first rank of its place does")


def _require_equal(ours_N: IntArray, theirs_N: IntArray, order_N: IntArray, what: str) -> None:
    differs = np.flatnonzero(ours_N != theirs_N)
    if len(differs):
        row = int(order_N[differs[0]])
        raise _not_alike(f"row {row}, whose {what} is not that of the first rank of its pipeline place")


def _not_alike(found: str) -> TraceError:
    return TraceError(
        Mistake(
            where="communication trace",
            found=found,
            allowed="the same requests of all ranks at one place of the pipeline, each of its own groups",
        )
    )
