"""Completion times, throughputs and slowdowns of a record's transfers.

A *flow* is a transfer that moved bytes over the fabric. Its completion time (FCT) runs from the instant it was ready to
the arrival of its last byte; its throughput is its bytes over that time, its slowdown that time over what it takes
alone. The completion time of a transfer that never finished is infinite, its throughput zero.

Shapes: T transfers of the table, F of them flows, Q queue pairs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.generated_tables import GeneratedTable, SelectedRows
from fabrictune.foundation.metrics.formulas import throughput_bps
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S

MOST_SORTED = 2**22  # flows at a time


def is_flow(transfers: Columns) -> BoolArray:
    """Return which transfers moved bytes over the fabric, shape (T,)."""
    if isinstance(transfers, GeneratedTable):
        return transfers.keep("is_flow", lambda: _is_flow(transfers))
    return _is_flow(transfers)


def _is_flow(transfers: Columns) -> BoolArray:
    return np.asarray((transfers["qp"] >= 0) & (transfers["bytes"] > 0))


def select_flows(transfers: Columns) -> Columns:
    """Return the rows of the transfers that moved bytes over the fabric."""
    return SelectedRows(transfers, is_flow(transfers))


def completion_times_ps(flows: Columns) -> FloatArray:
    """Return finish less ready of each flow, shape (F,); infinite where it never finished."""
    finish_ps_F = flows["finish_ps"]
    is_unfinished_F = finish_ps_F < 0
    time_ps_F = (finish_ps_F - flows["ready_ps"]).astype(np.float64)
    time_ps_F[is_unfinished_F] = np.inf
    return time_ps_F


def throughputs_bps(flows: Columns) -> FloatArray:
    """Return bytes over completion time of each flow, shape (F,); 0 where it never finished, infinite for no time."""
    bps_F = completion_times_ps(flows)
    with np.errstate(divide="ignore"):
        return np.divide(flows["bytes"] * float(BITS_PER_BYTE * PS_PER_S), bps_F, out=bps_F)


def slowdowns(flows: Columns) -> FloatArray:
    """Return completion over ideal time of each flow, shape (F,); infinite where it never finished.

    nan where the ideal time is unknown.
    """
    slowdown_F = completion_times_ps(flows)
    if "ideal_ps" not in flows:
        return np.full_like(slowdown_F, np.nan)
    ideal_ps_F = flows["ideal_ps"]
    return np.divide(slowdown_F, np.where(ideal_ps_F > 0, ideal_ps_F, np.nan), out=slowdown_F)


def makespan_ps(transfers: Columns) -> float:
    """Return the time from the first transfer ready to the last one's last byte, infinite if one never finished.

    Transfers inside a host count. nan where there are none.
    """
    if len(transfers["finish_ps"]) == 0:
        return math.nan
    if (transfers["finish_ps"] < 0).any():
        return math.inf
    return float(transfers["finish_ps"].max() - transfers["ready_ps"].min())


def aggregate_throughput_bps(transfers: Columns) -> float:
    """Return the payload of all flows over the makespan; nan where that is zero."""
    time_ps = makespan_ps(transfers)
    return throughput_bps(float(select_flows(transfers)["bytes"].sum()), time_ps) if time_ps > 0 else math.nan


def queue_pair_rates_bps(flows: Columns) -> FloatArray:
    """Return each queue pair's payload rate over the time in which it had something to send, shape (Q,).

    Transfers of one queue pair finish in the order in which they become ready, so each adds the time since the later
    of its own readiness and the previous one's finish. 0 where one of them never finished; a queue pair that took no
    time is left out.
    """
    columns = [flows[name] for name in ("qp", "ready_ps", "finish_ps", "bytes")]
    rates = [_rates_bps(*(column_F[rows] for column_F in columns)) for rows in _of_some_queue_pairs(columns[0])]
    return np.concatenate([np.zeros(0), *rates])


def _of_some_queue_pairs(qp_F: IntArray) -> Iterator[IntArray | slice]:
    """Yield all flows of some queue pairs at a time, of about MOST_SORTED flows, queue pairs in order."""
    if len(qp_F) <= MOST_SORTED:
        yield slice(None)
        return
    num_flows_Q = np.bincount(qp_F)
    part_Q = (np.cumsum(num_flows_Q) - num_flows_Q) // MOST_SORTED
    for begin, end in pairwise([*np.searchsorted(part_Q, np.unique(part_Q)).tolist(), len(part_Q)]):
        yield np.flatnonzero((qp_F >= begin) & (qp_F < end))


def _rates_bps(qp_F: IntArray, ready_ps_F: IntArray, finish_ps_F: IntArray, bytes_F: IntArray) -> FloatArray:
    finish_ps_F = np.where(finish_ps_F < 0, np.iinfo(np.int64).max, finish_ps_F)
    order = np.lexsort((finish_ps_F, ready_ps_F, qp_F))
    qp_F, ready_ps_F, finish_ps_F = qp_F[order], ready_ps_F[order], finish_ps_F[order]
    is_follower_F = np.concatenate([[False], qp_F[1:] == qp_F[:-1]])[: len(qp_F)]
    previous_finish_ps_F = np.where(is_follower_F, np.roll(finish_ps_F, 1), ready_ps_F)
    busy_ps_F = np.maximum(finish_ps_F - np.maximum(ready_ps_F, previous_finish_ps_F), 0)
    row_F = np.cumsum(~is_follower_F) - 1
    busy_ps_Q, bytes_Q = _sum(row_F, busy_ps_F), _sum(row_F, bytes_F[order])
    is_finished_Q = _sum(row_F, finish_ps_F == np.iinfo(np.int64).max) == 0
    is_timed_Q = busy_ps_Q > 0
    rate_bps_Q = BITS_PER_BYTE * bytes_Q[is_timed_Q] * PS_PER_S / busy_ps_Q[is_timed_Q]
    return np.where(is_finished_Q[is_timed_Q], rate_bps_Q, 0.0)


def parts_of(record: RunRecord) -> list[str]:
    """Return the names of a mixture's parts in their order; none where there is one kind of traffic."""
    return list(dict.fromkeys(record.tables.get("transfers", {}).get("part", np.zeros(0, object)).tolist()))


def of_part(record: RunRecord, part: str) -> RunRecord:
    """Return the record with the transfers of one part of a mixture alone; none where there is no such part."""
    transfers = record.tables["transfers"]
    rows = np.flatnonzero(transfers.get("part", np.array([""], object)) == part)
    tables: Mapping[str, Any] = {**record.tables, "transfers": {name: col[rows] for name, col in transfers.items()}}
    return replace(record, tables=tables)


def _sum(row_F: IntArray, value_F: IntArray | BoolArray) -> FloatArray:
    return np.asarray(np.bincount(row_F, weights=value_F), np.float64)
