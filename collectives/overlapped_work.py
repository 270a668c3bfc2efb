"""Work beside communication as requests of its own, from the waits that a rank has measured.

A ledger's request depends on the requests waited for before it. Work between a request and the wait that follows it is
in no request's `compute_before_ps`, so that a replay on a faster network would skip it. The measured waits say when it
ended: each such stretch becomes a barrier of that rank alone, on which all depends that depends on the wait. Plans
record it so from the start (`trainer_probe/planning/plan_ledger.py`).

Left out: work after the last wait of a trace.

Shapes: N requests, W stretches of work.
"""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.texts import TextColumn, Texts
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation

MAX_TIME_PS = 2**62  # 53 days


def has_measured_waits(trace: CommTrace) -> bool:
    """Return whether ranks have measured how long they waited for requests."""
    return bool(_is_waited_N(trace).any())


def with_overlapped_work(trace: CommTrace) -> CommTrace:
    """Return the trace with a request for each stretch of work between a request and the wait that follows it."""
    is_waited_N = _is_waited_N(trace)
    if not is_waited_N.any():
        return trace
    stretches = _Stretches(len(trace))
    order_N = np.argsort(trace.rank_N, kind="stable")
    for rows in np.split(order_N, np.flatnonzero(np.diff(trace.rank_N[order_N])) + 1):
        _find_stretches(trace, rows, is_waited_N, stretches)
    return _with_stretches(trace, stretches)


def _is_waited_N(trace: CommTrace) -> BoolArray:
    """Return which requests have measured times, and such as can be."""
    measured = (trace.issue_ps_N, trace.complete_ps_N, trace.exposed_wait_ps_N)
    is_time_N: BoolArray = np.all([(column_N >= 0) & (column_N <= MAX_TIME_PS) for column_N in measured], axis=0)
    return is_time_N & (trace.exposed_wait_ps_N <= trace.complete_ps_N)


class _Stretches:
    """Stretches of work, numbered behind the N requests."""

    def __init__(self, num_requests: int) -> None:
        self.of_request_N = np.full(num_requests, UNKNOWN, np.int64)  # the stretch in front of a request's wait
        self.before = array("q")  # the request whose wait each ends with
        self.work_ps = array("q")  # since the wait before it
        self.waits = array("q")  # of one stretch after another
        self.num_waits = array("q")

    def add(self, request: int, work_ps: int, waits: Sequence[int]) -> int:
        """Add the stretch that ends with a request's wait; returns its row."""
        row = len(self.of_request_N) + len(self.before)
        self.of_request_N[request] = row
        self.before.append(request)
        self.work_ps.append(work_ps)
        self.waits.extend(waits)
        self.num_waits.append(len(waits))
        return row

    def expand(self, wait_D: IntArray) -> tuple[IntArray, IntArray]:
        """Return requests waited for with the stretches in front of their waits, and how many each becomes."""
        stretch_D = self.of_request_N[wait_D]
        rows = np.stack([stretch_D, wait_D], axis=1).ravel()
        return rows[rows != UNKNOWN], 1 + (stretch_D != UNKNOWN)


def _find_stretches(trace: CommTrace, row_R: IntArray, is_waited_N: BoolArray, stretches: _Stretches) -> None:
    """Add the stretches of one rank, whose requests are the rows `row_R`."""
    waited = row_R[is_waited_N[row_R]]
    wait_ps = trace.complete_ps_N[waited] - trace.exposed_wait_ps_N[waited]
    times = np.concatenate([trace.issue_ps_N[row_R], wait_ps])
    rows = np.concatenate([row_R, waited])
    is_wait = np.arange(len(rows)) >= len(row_R)
    first = int(row_R[0])
    began_ps = max(0, int(trace.issue_ps_N[first]) - int(trace.compute_before_ps_N[first]))
    work_since_ps = last_ps = began_ps  # ends of the last wait or stretch, and of the last event
    waited_for: list[int] = []  # since the last request
    for place in np.lexsort((is_wait, times)).tolist():
        row, at_ps = int(rows[place]), int(times[place])
        if not is_wait[place]:
            waited_for = stretches.expand(trace.dependencies.of(row))[0].tolist()
            last_ps = max(last_ps, at_ps)
            continue
        if at_ps > last_ps:
            stretch = stretches.add(row, at_ps - work_since_ps, waited_for)
            waited_for = [*waited_for, stretch]
        waited_for = [*waited_for, row]
        work_since_ps = last_ps = max(last_ps, int(trace.complete_ps_N[row]))


def _with_stretches(trace: CommTrace, stretches: _Stretches) -> CommTrace:
    """Return the requests with the stretches behind them."""
    before = np.array(stretches.before, np.int64)
    num_stretches = len(before)
    ranks, rank_W = np.unique(trace.rank_N[before], return_inverse=True)
    unknown_W = np.full(num_stretches, UNKNOWN, np.int64)
    added: dict[str, IntArray] = {
        "rank_N": trace.rank_N[before],
        "operation_N": np.full(num_stretches, Operation.BARRIER, np.int64),
        "group_N": len(trace.groups) + rank_W.ravel(),
        "bytes_N": np.zeros(num_stretches, np.int64),
        "compute_before_ps_N": np.array(stretches.work_ps, np.int64),
        "step_N": trace.step_N[before],
    }
    row_D, counts_D = stretches.expand(trace.dependencies.row_D)
    ends_D1 = np.concatenate([[0], np.cumsum(counts_D)])
    offset_N1 = ends_D1[trace.dependencies.offset_N1]
    dependencies = Dependencies(
        offset_N1=np.concatenate([offset_N1, offset_N1[-1] + np.cumsum(stretches.num_waits, dtype=np.int64)]),
        row_D=np.concatenate([row_D, np.array(stretches.waits, np.int64)]),
    )
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(trace, name), added.get(name, unknown_W)])
        for name in (*added, "peer_N", "issue_ps_N", "complete_ps_N", "exposed_wait_ps_N")
    }
    return replace(
        trace,
        groups=(*trace.groups, *((rank,) for rank in ranks.tolist())),
        **columns,
        axis_N=_texts(trace.axis_N, ALONE, num_stretches),
        policy_N=_texts(trace.policy_N, "none", num_stretches),
        tag_N=_texts(trace.tag_N, ALONE, num_stretches),
        dependencies=dependencies,
    )


def _texts(column: TextColumn, text: str, num_more: int) -> Texts:
    """Return a column with one text for more rows behind it."""
    texts = Texts.of(column)
    place = texts.vocabulary.index(text) if text in texts.vocabulary else len(texts.vocabulary)
    return Texts(
        vocabulary=texts.vocabulary if place < len(texts.vocabulary) else (*texts.vocabulary, text),
        place_N=np.concatenate([texts.place_N, np.full(num_more, place, np.int32)]),
    )
