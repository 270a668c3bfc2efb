"""Variants of a job's network on the page: the step over each thing whose values have an order, and all variants.

Shapes: V variants.
"""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_duration
from fabrictune.reports.blocks import Block, Cell, Figure, Section, Table, left_out, number, words
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

VARIANTS = select(
    "network_variants", "family", "value", "amount", "step_ps", "step_low_ps", "step_high_ps", "change_fraction"
)
MAX_ROWS = 64
MAX_CHARTS = 4
MARGIN = 0.05  # of the highest step, above it
STEP, LOW, HIGH = "step", "lower end", "upper end"


def whatif_section(runs: Sequence[Run]) -> Section | None:
    """Return figures and a table for each run that changed a job's network, or None."""
    blocks: list[Block] = []
    for run in runs:
        if (variants := run.rows(VARIANTS)) is not None:
            blocks += [_draw(chart) for chart in whatif_charts(run.label, variants)]
            blocks.append(_table(run.label, variants))
    if not blocks:
        return None
    lead = "One thing of the network is changed at a time; all else is as the job has it."
    return Section(anchor="whatif", title="What network is enough", lead=lead, blocks=tuple(blocks))


def whatif_charts(label: str, variants: Columns) -> list[LineChart]:
    """Return the step with its interval over each family whose values have an order."""
    charts = []
    for name in dict.fromkeys(variants["family"].tolist()):
        chosen_V = (variants["family"] == name) & (variants["amount"] > 0)
        if np.count_nonzero(chosen_V) > 1:
            charts.append(_chart(label, name, {key: column[chosen_V] for key, column in variants.items()}))
    return charts[:MAX_CHARTS]


def _chart(label: str, name: str, own: Columns) -> LineChart:
    order = np.argsort(own["amount"], kind="stable")
    amount = own["amount"][order].tolist()
    curves = {
        legend: list(zip(amount, own[column][order].tolist(), strict=True))
        for legend, column in ((STEP, "step_ps"), (LOW, "step_low_ps"), (HIGH, "step_high_ps"))
    }
    highest = max(step for points in curves.values() for _, step in points)
    unit = "bps" if "rate" in name.lower() else ""
    return LineChart(
        across=Scale(name=name, low=amount[0], high=amount[-1], unit=unit, is_logarithmic=True),
        up=Scale(name="step", low=0, high=(1 + MARGIN) * highest, unit="ps"),
        curves=curves,
        caption=f"{label}: step by {name}.",
    )


def _draw(chart: LineChart) -> Figure:
    return Figure(drawing=draw_curves(chart), caption=chart.caption)


def _table(label: str, variants: Columns) -> Table:
    num_rows = len(variants["family"])
    order = np.argsort(variants["step_ps"], kind="stable").tolist()
    return Table(
        caption=f"{label}: variants, the shortest step first",
        headings=("What", "Value", "Step", "Lower end", "Upper end", "Change"),
        rows=tuple(_row(variants, row) for row in order[:MAX_ROWS]),
        left_out=left_out(min(num_rows, MAX_ROWS), num_rows, "variant", "network_variants"),
    )


def _row(variants: Columns, row: int) -> tuple[Cell, ...]:
    times = (float(variants[name][row]) for name in ("step_ps", "step_low_ps", "step_high_ps"))
    change = float(variants["change_fraction"][row])
    return (
        words(str(variants["family"][row])),
        words(str(variants["value"][row])),
        *(number(value, format_duration(value)) for value in times),
        number(change, f"{change:+.1%}"),
    )
