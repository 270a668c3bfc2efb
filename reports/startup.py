"""Storms of start-up: what each pattern costs as jobs grow, on logarithmic axes where a power law is a line."""

from collections.abc import Mapping, Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS, format_duration
from fabrictune.reports import svg
from fabrictune.reports.axes import Axis, logarithmic_duration_axis
from fabrictune.reports.blocks import Cell, Figure, Section, Table, number, words
from fabrictune.reports.curves import HEIGHT, LEFT, TOP, Points, draw_curves
from fabrictune.reports.record_view import Run

COSTS: Mapping[str, str] = {"requests": "requests", "wall_ns": "wall time", "server_cpu_ns": "server CPU"}


def storms_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure for each cost of each run that raised storms, or None."""
    storms = [(run.label, run.storms) for run in runs if run.storms is not None and len(run.storms["ranks"])]
    figures = tuple(_draw(label, table, cost) for label, table in storms for cost in COSTS)
    if not figures:
        return None
    lead = (
        "Emulated ranks start at once against real servers on one machine. Growth and ratios carry over, not seconds."
    )
    return Section(anchor="storms", title="Start-up", lead=lead, blocks=figures)


def _draw(label: str, table: Columns, cost: str) -> Figure:
    curves = {pattern: _points(table, pattern, cost) for pattern in dict.fromkeys(table["pattern"].tolist())}
    values = [value for points in curves.values() for _, value in points]
    ranks = np.maximum(table["ranks"], 1)
    across = _logarithmic(float(ranks.min()), float(ranks.max()), start=LEFT, end=svg.WIDTH - 8)
    up = (_logarithmic if cost == "requests" else logarithmic_duration_axis)(
        min(values), max(values), start=TOP + HEIGHT, end=TOP
    )
    caption = f"{label}: {COSTS[cost]} of each pattern over the number of ranks."
    drawing = draw_curves(curves, across, up, names=("ranks", COSTS[cost]), caption=caption)
    return Figure(drawing=drawing, caption=caption, table=_table(table, cost))


def _points(table: Columns, pattern: str, cost: str) -> Points:
    is_own = table["pattern"] == pattern
    scale = 1 if cost == "requests" else PS_PER_NS
    values = np.maximum(table[cost][is_own], 1) * scale  # a clock's 0 has no place on a logarithmic axis
    return sorted(zip(np.maximum(table["ranks"][is_own], 1).tolist(), values.tolist(), strict=True))


def _logarithmic(low: float, high: float, *, start: float, end: float) -> Axis:
    return Axis(low=low, high=high, start=start, end=end, is_logarithmic=True)


def _table(table: Columns, cost: str) -> Table:
    rows = zip(table["pattern"].tolist(), table["ranks"].tolist(), table[cost].tolist(), strict=True)
    return Table(
        headings=("Pattern", "Ranks", COSTS[cost].capitalize()),
        rows=tuple((words(pattern), number(ranks, f"{ranks:,}"), _cell(value, cost)) for pattern, ranks, value in rows),
        is_folded=True,
    )


def _cell(value: float, cost: str) -> Cell:
    return number(value, f"{value:,.0f}" if cost == "requests" else format_duration(value * PS_PER_NS))
