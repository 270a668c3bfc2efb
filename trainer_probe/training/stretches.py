"""Stretches of a step: what each rank did from its begin to its end, in turn work and waits for communication.

Shapes: N requests of a trace.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import Columns, IntArray
from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.traces import UNKNOWN, CommTrace
from fabrictune.foundation.units import PS_PER_NS

MAX_STRETCHES = 50_000  # of whole ranks, the first


def last_step_stretches(trace: CommTrace) -> Columns:
    """Return the columns of the record's table `rank_stretches`: the last step of a measured trace."""
    rows: list[dict[str, Any]] = []
    if len(trace):
        step = int(trace.step_N.max())
        is_shown_N = (trace.step_N == step) & (trace.issue_ps_N != UNKNOWN)
        for rank in np.unique(trace.rank_N[is_shown_N]).tolist():
            own = list(_stretches(trace, np.flatnonzero(is_shown_N & (trace.rank_N == rank)), step, rank))
            if len(rows) + len(own) > MAX_STRETCHES:
                break
            rows += own
    return to_columns("rank_stretches", rows)


def _stretches(trace: CommTrace, rows: IntArray, step: int, rank: int) -> Iterator[dict[str, Any]]:
    """Yield the stretches of a rank, from its first work before a request to its last request's end."""

    def stretch(axis: str, tag: str, start_ns: int, end_ns: int) -> dict[str, Any]:
        return {
            "step": step,
            "rank": rank,
            "axis": axis,
            "tag": tag,
            "start_ns": start_ns,
            "duration_ns": end_ns - start_ns,
        }

    at_ns = int((trace.issue_ps_N[rows] - trace.compute_before_ps_N[rows]).min()) // PS_PER_NS
    waits = rows[(trace.complete_ps_N[rows] != UNKNOWN) & (trace.exposed_wait_ps_N[rows] >= PS_PER_NS)]
    for row in waits[np.argsort(trace.complete_ps_N[waits], kind="stable")].tolist():
        end_ns = int(trace.complete_ps_N[row]) // PS_PER_NS
        start_ns = max(at_ns, end_ns - int(trace.exposed_wait_ps_N[row]) // PS_PER_NS)
        if start_ns > at_ns:
            yield stretch(ALONE, "", at_ns, start_ns)
        if end_ns > start_ns:
            yield stretch(trace.axis_N[row], trace.tag_N[row], start_ns, end_ns)
        at_ns = max(at_ns, end_ns)
    last_ns = int(max(trace.issue_ps_N[rows].max(), trace.complete_ps_N[rows].max())) // PS_PER_NS
    if last_ns > at_ns:
        yield stretch(ALONE, "", at_ns, last_ns)
