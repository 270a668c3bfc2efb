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
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.generated_tables import GeneratedTable, SelectedRows
from fabrictune.foundation.metrics.formulas import throughput_bps
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S

OF_PARTS = ("transfers", "replayed_steps", "exposed_communication")  # tables with a part's rows
MOST_SORTED = 2**21  # flows at a time
FLUID_ENGINE = "the fluid engine"
FINISH_BOUNDS = ("finish_low_ps", "finish_high_ps")  # columns of runs with estimates


def estimator(record: RunRecord) -> str | None:
    """Return what took traffic at its mean rates: `bounded skip`, `fluid skip`, `the fluid engine` or None."""
    skip = record.run.get("skip")
    if not isinstance(skip, Mapping):
        return None
    if isinstance(skip.get("fluid"), Mapping):
        return FLUID_ENGINE if record.run.get("engine") == "fluid" else "fluid skip"
    bounded = skip.get("bounded")
    return "bounded skip" if isinstance(bounded, Mapping) and bounded.get("spans") else None


def with_finish(record: RunRecord, column: str) -> RunRecord:
    """Return the record with its transfers' times alone, each finished at the time of another column."""
    table = record.tables["transfers"]
    times = {name: table[name] for name in ("qp", "bytes", "ready_ps")}
    return replace(record, tables={"transfers": {**times, "finish_ps": table[column]}})


def makespan_factors(record: RunRecord) -> tuple[float, ...]:
    """Return between which multiples of its makespan a run without bounds of each transfer lies; () if unknown."""
    skip = record.run.get("skip")
    fluid = skip.get("fluid") if isinstance(skip, Mapping) else None
    return tuple(fluid.get("makespan_factors", ())) if isinstance(fluid, Mapping) else ()


def with_makespan(record: RunRecord, factor: float) -> RunRecord:
    """Return the record with its transfers' times alone, each finished at a multiple of its time since the first."""
    table = record.tables["transfers"]
    times = {name: table[name] for name in ("qp", "bytes", "ready_ps")}
    finish_ps_T = table["finish_ps"]
    first_ps = times["ready_ps"].min() if len(finish_ps_T) else 0
    finish_ps_T = np.where(finish_ps_T < 0, -1, first_ps + np.rint((finish_ps_T - first_ps) * factor).astype(np.int64))
    return replace(record, tables={"transfers": {**times, "finish_ps": finish_ps_T}})


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
    finish_ps_T = transfers["finish_ps"]
    if len(finish_ps_T) == 0:
        return math.nan
    if (finish_ps_T < 0).any():
        return math.inf
    return float(finish_ps_T.max() - transfers["ready_ps"].min())


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
    pair_F, num_pairs = _numbered(flows["qp"])
    bytes_Q = _sums(pair_F, flows["bytes"], num_pairs)
    ready_ps_F, finish_ps_F = flows["ready_ps"], flows["finish_ps"]
    is_unfinished_Q = _sums(pair_F, finish_ps_F < 0, num_pairs) > 0
    busy_ps_Q = np.zeros(num_pairs)
    for rows_F in _of_some_pairs(pair_F, num_pairs):
        busy_ps_Q += _busy_ps(pair_F[rows_F], ready_ps_F[rows_F], finish_ps_F[rows_F], num_pairs)
    is_timed_Q = busy_ps_Q > 0
    rate_bps_Q = BITS_PER_BYTE * bytes_Q[is_timed_Q] * PS_PER_S / busy_ps_Q[is_timed_Q]
    return np.where(is_unfinished_Q[is_timed_Q], 0.0, rate_bps_Q)


def _numbered(qp_F: IntArray) -> tuple[NDArray[np.int32], int]:
    """Return the queue pairs numbered from 0, in order, and how many there are."""
    if (qp_F[1:] > qp_F[:-1]).all():  # one flow each, in order
        return np.arange(len(qp_F), dtype=np.int32), len(qp_F)
    qp_Q = np.unique(qp_F)
    pair_F = np.empty(len(qp_F), np.int32)
    for begin, end in ranges(0, len(qp_F)):
        pair_F[begin:end] = np.searchsorted(qp_Q, qp_F[begin:end])
    return pair_F, len(qp_Q)


def _sums(pair_F: NDArray[np.int32], value_F: NDArray[Any], num_pairs: int) -> FloatArray:
    """Return the sum of whole numbers over each queue pair."""
    sum_Q = np.zeros(num_pairs)
    for begin, end in ranges(0, len(pair_F)):
        sum_Q += np.bincount(pair_F[begin:end], weights=value_F[begin:end], minlength=num_pairs)
    return sum_Q


def _of_some_pairs(pair_F: NDArray[np.int32], num_pairs: int) -> Iterator[IntArray | slice]:
    """Yield all flows of some queue pairs at a time, of about MOST_SORTED flows, queue pairs in order."""
    if len(pair_F) <= MOST_SORTED:
        yield slice(None)
        return
    flows_before_Q = np.cumsum(_sums(pair_F, np.ones(len(pair_F), bool), num_pairs))
    part_Q = (flows_before_Q // MOST_SORTED).astype(np.int64)
    for begin, end in pairwise([*np.searchsorted(part_Q, np.unique(part_Q)).tolist(), num_pairs]):
        yield np.flatnonzero((pair_F >= begin) & (pair_F < end))


def _busy_ps(pair_F: NDArray[np.int32], ready_ps_F: IntArray, finish_ps_F: IntArray, num_pairs: int) -> FloatArray:
    """Return how long each queue pair had something to send; one with unfinished flows a very long time."""
    finish_ps_F = np.where(finish_ps_F < 0, np.iinfo(np.int64).max, finish_ps_F)
    if len(pair_F) == num_pairs:  # a flow each: none waits for another
        busy_ps_F = np.maximum(finish_ps_F - ready_ps_F, 0)
        return np.asarray(np.bincount(pair_F, weights=busy_ps_F, minlength=num_pairs), np.float64)
    order = np.lexsort((finish_ps_F, ready_ps_F, pair_F))
    pair_F, ready_ps_F, finish_ps_F = pair_F[order], ready_ps_F[order], finish_ps_F[order]
    is_follower_F = np.concatenate([[False], pair_F[1:] == pair_F[:-1]])[: len(pair_F)]
    previous_finish_ps_F = np.where(is_follower_F, np.roll(finish_ps_F, 1), ready_ps_F)
    busy_ps_F = np.maximum(finish_ps_F - np.maximum(ready_ps_F, previous_finish_ps_F), 0)
    return np.asarray(np.bincount(pair_F, weights=busy_ps_F, minlength=num_pairs), np.float64)


def parts_of(record: RunRecord) -> list[str]:
    """Return the names of a mixture's parts in their order; none where there is one kind of traffic."""
    return list(dict.fromkeys(record.tables.get("transfers", {}).get("part", np.zeros(0, object)).tolist()))


def of_part(record: RunRecord, part: str) -> RunRecord:
    """Return the record with the transfers and replayed steps of one part of a mixture alone, none of no such part."""
    tables: dict[str, Any] = dict(record.tables)
    for table in OF_PARTS:
        if table in tables:
            columns = record.tables[table]
            rows = np.flatnonzero(columns.get("part", np.array([""], object)) == part)
            tables[table] = {name: column[rows] for name, column in columns.items()}
    return replace(record, tables=tables, run=_without_makespan_factors(record))


def _without_makespan_factors(record: RunRecord) -> Mapping[str, Any]:
    """Return a record's run without the factors of its makespan, which is not that of a part."""
    if not makespan_factors(record):
        return record.run
    skip = record.run["skip"]
    return {**record.run, "skip": {**skip, "fluid": {**skip["fluid"], "makespan_factors": []}}}
