"""Start-up storms: the cost of each pattern as jobs grow, on logarithmic axes where a power law is a line."""

from collections.abc import Mapping, Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS, format_duration
from fabrictune.reports.blocks import Cell, Figure, Section, Table, number, words
from fabrictune.reports.charts import LineChart, Points, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

STORMS = select("storms", "pattern", "ranks", "requests", "wall_ns", "server_cpu_ns")
COSTS: Mapping[str, str] = {"requests": "requests", "wall_ns": "wall time", "server_cpu_ns": "server CPU"}


def storms_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure for each cost of each run that raised storms, or None."""
    storms = [(run.label, table) for run in runs if (table := run.rows(STORMS)) is not None]
    figures = tuple(_draw(label, table, cost) for label, table in storms for cost in COSTS)
    if not figures:
        return None
    lead = (
        "Emulated ranks start together against real servers on one host. Ratios and growth carry over; seconds do not."
    )
    return Section(anchor="storms", title="Start-up", lead=lead, blocks=figures)


def _draw(label: str, table: Columns, cost: str) -> Figure:
    chart = storm_chart(label, table, cost)
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=_table(table, cost))


def storm_chart(label: str, table: Columns, cost: str) -> LineChart:
    """Return one of `COSTS` of each start-up pattern over the number of ranks."""
    curves = {pattern: _points(table, pattern, cost) for pattern in dict.fromkeys(table["pattern"].tolist())}
    values = [value for points in curves.values() for _, value in points]
    ranks = np.maximum(table["ranks"], 1)
    unit = "" if cost == "requests" else "ps"
    return LineChart(
        across=Scale(name="ranks", low=float(ranks.min()), high=float(ranks.max()), is_logarithmic=True),
        up=Scale(name=COSTS[cost], low=min(values), high=max(values), unit=unit, is_logarithmic=True),
        curves=curves,
        caption=f"{label}: {COSTS[cost]} of each pattern by number of ranks.",
    )


def _points(table: Columns, pattern: str, cost: str) -> Points:
    is_own = table["pattern"] == pattern
    scale = 1 if cost == "requests" else PS_PER_NS
    values = (
        np.maximum(table[cost][is_own], 1).astype(np.float64) * scale
    )  # a clock's 0 has no place on a logarithmic axis
    return sorted(zip(np.maximum(table["ranks"][is_own], 1).tolist(), values.tolist(), strict=True))


def _table(table: Columns, cost: str) -> Table:
    rows = zip(table["pattern"].tolist(), table["ranks"].tolist(), table[cost].tolist(), strict=True)
    return Table(
        headings=("Pattern", "Ranks", COSTS[cost].capitalize()),
        rows=tuple((words(pattern), number(ranks, f"{ranks:,}"), _cell(value, cost)) for pattern, ranks, value in rows),
    )


def _cell(value: float, cost: str) -> Cell:
    return number(value, f"{value:,.0f}" if cost == "requests" else format_duration(value * PS_PER_NS))
