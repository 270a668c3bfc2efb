"""Flow completion times: the distribution of every run on one scale, and the slowest queue pairs by name.

Shapes: T transfers over the fabric; the time of one that never finished is infinite.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.metrics.transfers import completion_times_ps, select_flows, throughputs_bps
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
    plural,
    words,
)
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import TRANSFERS, Run

MAX_STEPS = 300  # of a drawn distribution
MAX_ROWS = 10
WIDE = 10  # a range of times drawn logarithmically
PERCENTILES = (0.5, 0.9, 0.99, 0.999, 1.0)


def completion_section(runs: Sequence[Run]) -> Section | None:
    """Return the distribution and the slowest queue pairs, or None where no transfer finished."""
    finishing = [run for run in runs if run.finished is not None]
    if not finishing:
        return None
    slowest = [slowest_queue_pairs(run, table) for run in finishing if (table := _flows(run)) is not None]
    unfinished = tuple(_unfinished(run) for run in runs if run.finished is None and _flows(run) is not None)
    lead = "A flow is one transfer, from ready to delivered. A step of a synchronous job ends with its slowest flow."
    return Section(
        anchor="completion",
        title="Flow completion times",
        lead=lead,
        blocks=(draw_distribution(finishing), *unfinished, *slowest),
    )


def _unfinished(run: Run) -> Table:
    return Table(headings=(), rows=(), caption=f"{run.label}: no transfer over the fabric finished")


def draw_distribution(runs: Sequence[Run]) -> Figure:
    """Return the cumulative distribution of each run's flow completion times."""
    completions = completions_ps(runs)
    chart = completion_chart(completions)
    table = Table(
        headings=("Run", "Transfers", *(_percentile_name(fraction) for fraction in PERCENTILES)),
        rows=tuple(_percentile_row(label, times_T) for label, times_T in completions.items()),
    )
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=table)


def completions_ps(runs: Sequence[Run]) -> dict[str, FloatArray]:
    """Return the completion times of each run's transfers over the fabric."""
    return {run.label: completion_times_ps(table) for run in runs if (table := _flows(run)) is not None}


def completion_chart(completions: Mapping[str, FloatArray]) -> LineChart:
    """Return the cumulative distributions of flow completion times in ps, by run."""
    across = _time_scale(list(completions.values()))
    return LineChart(
        across=across,
        up=Scale(name="transfers completed", low=0, high=100, unit="%"),
        curves={
            label: [(time, 100 * share) for time, share in _steps(times_T, across.low)]
            for label, times_T in completions.items()
        },
        caption=" ".join(("CDF of flow completion times, all runs on one scale.", *_never(completions))),
    )


def _never(completions: Mapping[str, FloatArray]) -> Iterator[str]:
    """Yield how many transfers of each run never finished: its curve ends below 100 %."""
    for label, times_T in completions.items():
        if count := int(np.isinf(times_T).sum()):
            yield f"{label}: {count:,} of {plural(len(times_T), 'transfer')} never finished."


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


def _steps(times_T: FloatArray, begin_ps: float) -> list[tuple[float, float]]:
    """Return the corners of the distribution's staircase from `begin_ps` on, thinned to at most MAX_STEPS steps.

    It ends below 1 where transfers never finished.
    """
    finished_T = np.sort(times_T[np.isfinite(times_T)])
    ranks = np.unique(np.linspace(0, len(finished_T) - 1, min(len(finished_T), MAX_STEPS)).round().astype(np.int64))
    corners, share = [(begin_ps, 0.0)], 0.0
    for rank in ranks.tolist():
        corners.append((float(finished_T[rank]), share))
        share = (rank + 1) / len(times_T)
        corners.append((float(finished_T[rank]), share))
    return corners


def _time_scale(times: Sequence[FloatArray]) -> Scale:
    """Return a scale for all runs, logarithmic where the longest transfer took ten times the shortest or more."""
    finished = np.concatenate([times_T[np.isfinite(times_T)] for times_T in times])
    shortest, longest = int(finished.min()), int(finished.max())
    name = "flow completion time"
    if longest >= WIDE * shortest > 0:
        return Scale(name=name, low=0.8 * shortest, high=1.1 * longest, unit="ps", is_logarithmic=True)
    return Scale(name=name, low=0, high=1.02 * longest, unit="ps")


def _flows(run: Run) -> Columns | None:
    """Return the transfers over the fabric, None where the run has no transfers."""
    transfers = run.table(TRANSFERS)
    return select_flows(transfers) if transfers is not None else None


def _percentile_name(fraction: float) -> str:
    return METRICS["completion_time.max"].label if fraction == 1 else f"p{100 * fraction:g} FCT"


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
