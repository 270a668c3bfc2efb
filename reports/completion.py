"""Flow completion times: the distribution of every run and its tail, slowdown by size, the slowest queue pairs by name.

Shapes: T transfers over the fabric; the time of one that never finished is infinite.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.metrics.transfers import completion_times_ps, slowdowns, throughputs_bps
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_rate
from fabrictune.reports.blocks import (
    Cell,
    Figure,
    Section,
    Table,
    left_out,
    missing,
    number,
    words,
)
from fabrictune.reports.by_size import draw_slowdowns, size_classes
from fabrictune.reports.charts import LineChart
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.distributions import COMPLETION, SLOWDOWN, cumulative_chart, percentile_name, tail_chart
from fabrictune.reports.record_view import Run

MAX_ROWS = 10
MIN_TAIL = 100  # transfers: of fewer, none is above p99 but the highest
PERCENTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


def completion_section(runs: Sequence[Run]) -> Section | None:
    """Return the distribution and the slowest queue pairs, or None where no transfer finished."""
    finishing = [run for run in runs if run.finished is not None]
    if not finishing:
        return None
    slowest = [slowest_queue_pairs(run, table) for run in finishing if (table := run.flows) is not None]
    unfinished = tuple(_unfinished(run) for run in runs if run.finished is None and run.flows is not None)
    lead = "A flow is one transfer, from ready to delivered. A step of a synchronous job ends with its slowest flow."
    return Section(
        anchor="completion",
        title="Flow completion times",
        lead=lead,
        blocks=(draw_distribution(finishing), *_slow(finishing), *unfinished, *slowest),
    )


def _slow(runs: Sequence[Run]) -> Iterator[Figure]:
    """Yield the tail, and slowdown by size, as far as the runs have them."""
    if (tail := longest_chart(runs)) is not None:
        yield Figure(drawing=draw_curves(tail), caption=tail.caption)
    classes = {run.label: own for run in runs if (flows := run.flows) is not None and (own := size_classes(flows))}
    if (figure := draw_slowdowns(classes)) is not None:
        yield figure


def _unfinished(run: Run) -> Table:
    return Table(headings=(), rows=(), caption=f"{run.label}: no transfer over the fabric finished")


def draw_distribution(runs: Sequence[Run]) -> Figure:
    """Return the cumulative distribution of each run's flow completion times."""
    chart = completion_chart(runs)
    table = Table(
        headings=("Run", "Transfers", *(_heading(fraction) for fraction in PERCENTILES)),
        rows=tuple(_percentile_row(label, times_T) for label, times_T in _completions_ps(runs).items()),
    )
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=table)


def completion_chart(runs: Sequence[Run]) -> LineChart:
    """Return the cumulative distribution of flow completion times in ps, by run; each run has one that finished."""
    return cumulative_chart(COMPLETION, _completions_ps(runs), "CDF of flow completion times, all runs on one scale.")


def longest_chart(runs: Sequence[Run]) -> LineChart | None:
    """Return the tail of slowdowns, of completion times where a run does not know what its transfers take alone.

    None where no run has MIN_TAIL transfers. Each run has one that finished.
    """
    flows = [(run.label, table) for run in runs if (table := run.flows) is not None]
    if max(len(table["bytes"]) for _, table in flows) < MIN_TAIL:
        return None
    values = {label: slowdowns(table) for label, table in flows}
    if not any(np.isnan(value_T).any() for value_T in values.values()):
        return tail_chart(SLOWDOWN, values, "Tail of slowdowns: completion time over what the transfer takes alone.")
    return tail_chart(COMPLETION, _completions_ps(runs), "Tail of flow completion times.")


def _completions_ps(runs: Sequence[Run]) -> dict[str, FloatArray]:
    return {run.label: completion_times_ps(table) for run in runs if (table := run.flows) is not None}


def slowest_queue_pairs(run: Run, transfers: Columns) -> Table:
    """Return the queue pairs with the slowest transfers: what the slowest got, what all of them lost."""
    times_T = completion_times_ps(transfers)
    slowest_first_T = np.argsort(-times_T, kind="stable")
    _, first_of_each_Q = np.unique(transfers["qp"][slowest_first_T], return_index=True)
    slowest_Q = slowest_first_T[np.sort(first_of_each_Q)]
    return Table(
        caption=f"{run.label}: queue pairs with the slowest transfers",
        headings=("From and to", "Queue pair", "Transfers", "Slowest", "Its size", "Its rate", "Sent again", "CNPs"),
        rows=tuple(_queue_pair_row(run, transfers, row) for row in slowest_Q[:MAX_ROWS].tolist()),
        left_out=left_out(min(len(slowest_Q), MAX_ROWS), len(slowest_Q), "queue pair", "transfers"),
    )


def _heading(fraction: float) -> str:
    return METRICS["completion_time.max"].label if fraction == 1 else f"{percentile_name(fraction)} FCT"


def _percentile_row(label: str, times_T: FloatArray) -> tuple[Cell, ...]:
    values = percentiles(times_T, PERCENTILES).tolist()
    return (
        words(label),
        number(len(times_T), f"{len(times_T):,}"),
        *(number(value, format_metric(value, "ps")) for value in values),
    )


def _queue_pair_row(run: Run, transfers: Columns, row: int) -> tuple[Cell, ...]:
    """Return the row of a queue pair by its slowest transfer."""
    is_same_T = transfers["qp"] == transfers["qp"][row]
    name = run.pair_label(int(transfers["source"][row]), int(transfers["destination"][row]))
    slowest = {name: column[row : row + 1] for name, column in transfers.items()}
    size, time_ps, rate_bps = int(transfers["bytes"][row]), completion_times_ps(slowest)[0], throughputs_bps(slowest)[0]
    return (
        words(name),
        number(transfers["qp"][row], str(transfers["qp"][row])),
        number(is_same_T.sum(), f"{is_same_T.sum():,}"),
        number(time_ps, format_metric(time_ps, "ps")),
        number(size, format_bytes(size)),
        number(rate_bps, format_rate(rate_bps)),
        _packets_cell(transfers, "packets_retransmitted", is_same_T, tone="bad"),
        _packets_cell(transfers, "cnps", is_same_T),
    )


def _packets_cell(transfers: Columns, column: str, is_shown_T: BoolArray, *, tone: str = "") -> Cell:
    """Return a count over some transfers, a dash where the engine does not count it."""
    if column not in transfers:
        return missing()
    count = int(transfers[column][is_shown_T].sum())
    return number(count, f"{count:,}", tone=tone if count else "")
