"""Work beside communication as requests of its own, from the waits that a rank has measured.

A ledger's request depends on the requests waited for before it. Work between a request and the wait that follows it is
in no request's `compute_before_ps`, so that a replay on a faster network would skip it. The measured waits say when it
ended: each such stretch becomes a barrier of that rank alone, on which all depends that depends on the wait. Plans
record it so from the start (`trainer_probe/planning/plan_ledger.py`).

Left out: work after the last wait of a trace.

Shapes: N requests, W stretches of work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.texts import Texts
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
    stretches = _Stretches(num_requests=len(trace))
    order_N = np.argsort(trace.rank_N, kind="stable")
    for rows in np.split(order_N, np.flatnonzero(np.diff(trace.rank_N[order_N])) + 1):
        _find_stretches(trace, rows, is_waited_N, stretches)
    return _with_stretches(trace, stretches)


def _is_waited_N(trace: CommTrace) -> BoolArray:
    """Return which requests have measured times, and such as can be."""
    measured = (trace.issue_ps_N, trace.complete_ps_N, trace.exposed_wait_ps_N)
    is_time_N: BoolArray = np.all([(column_N >= 0) & (column_N <= MAX_TIME_PS) for column_N in measured], axis=0)
    return is_time_N & (trace.exposed_wait_ps_N <= trace.complete_ps_N)


@dataclass(kw_only=True)
class _Stretches:
    """Stretches of work, numbered behind the requests."""

    num_requests: int
    before: list[int] = field(default_factory=list)  # the request whose wait each ends with
    work_ps: list[int] = field(default_factory=list)  # since the wait before it
    waits: list[tuple[int, ...]] = field(default_factory=list)
    of_request: dict[int, int] = field(default_factory=dict)  # row of the stretch in front of a request's wait

    def add(self, request: int, work_ps: int, waits: Sequence[int]) -> int:
        """Add the stretch that ends with a request's wait; returns its row."""
        row = self.num_requests + len(self.before)
        self.before.append(request)
        self.work_ps.append(work_ps)
        self.waits.append(tuple(waits))
        self.of_request[request] = row
        return row

    def expand(self, waits: Sequence[int]) -> list[int]:
        """Return requests waited for with the stretches in front of their waits."""
        return [row for wait in waits for row in (self.of_request.get(wait, UNKNOWN), wait) if row != UNKNOWN]


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
            waited_for = stretches.expand(trace.dependencies.of(row).tolist())
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
    own = [stretches.expand(trace.dependencies.of(row).tolist()) for row in range(len(trace))]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(trace, name), added.get(name, unknown_W)])
        for name in (*added, "peer_N", "issue_ps_N", "complete_ps_N", "exposed_wait_ps_N")
    }
    return replace(
        trace,
        groups=(*trace.groups, *((rank,) for rank in ranks.tolist())),
        **columns,
        axis_N=_texts(trace.axis_N, [ALONE] * num_stretches),
        policy_N=_texts(trace.policy_N, ["none"] * num_stretches),
        tag_N=_texts(trace.tag_N, [ALONE] * num_stretches),
        dependencies=Dependencies.from_lists([*own, *stretches.waits]),
    )


def _texts(column: Sequence[str], more: Sequence[str]) -> Texts:
    return Texts.of((*column, *more))
