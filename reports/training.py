"""Training runs: loss over steps, speed and exposed communication; and the gain of each technique.

Shapes: S steps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from fabrictune.foundation.layout import AXES
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    duration,
    missing,
    number,
    percent,
    plural,
    words,
)
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

_EXPOSED = tuple(f"exposed_{axis}_ns" for axis in AXES)
TRAINING = select("training", "step", "loss", "is_skipped", "tokens_per_s", "mfu_fraction", *_EXPOSED)
ABLATION_STEPS = select(
    "ablation_steps",
    "technique",
    "base",
    "tokens_per_s",
    "mfu_fraction",
    "gain_fraction",
    "gain_fraction_low",
    "gain_fraction_high",
    *_EXPOSED,
)
MAX_STEPS = 200  # points of a curve


def training_section(runs: Sequence[Run]) -> Section | None:
    """Return the runs' losses in one figure with a table of their speeds, and a table for each ablation, or None."""
    trained = {run.label: table for run in runs if (table := run.rows(TRAINING)) is not None}
    blocks: list[Block] = [draw_losses(trained), speeds_table(trained)] if trained else []
    blocks += [ablation_table(run.label, table) for run in runs if (table := run.rows(ABLATION_STEPS)) is not None]
    if not blocks:
        return None
    lead = (
        "Measured on real processes. Exposed: communication that an average rank's work waits for in a step; on a GPU "
        "by events of its stream."
    )
    return Section(anchor="training", title="Training", lead=lead, blocks=tuple(blocks))


def draw_losses(trained: dict[str, Columns]) -> Figure:
    """Return the loss of each run over its steps; steps whose loss was not finite are left out."""
    chart = loss_chart(trained)
    return Figure(drawing=draw_curves(chart), caption=chart.caption)


def loss_chart(trained: Mapping[str, Columns]) -> LineChart:
    """Return the loss of each run over its steps."""
    curves = {label: _points(table) for label, table in trained.items()}
    points = [point for curve in curves.values() for point in curve] or [(0.0, 0.0)]
    steps, losses = zip(*points, strict=True)
    notes = (note for label, table in trained.items() for note in _left_out_steps(label, table))
    return LineChart(
        across=Scale(name="step", low=0, high=max(steps)),
        up=Scale(name="loss", low=min(0.0, *losses), high=max(losses)),
        curves=curves,
        caption=" ".join(("Loss by step, mean over the step's tokens.", *notes)),
    )


def _left_out_steps(label: str, table: Columns) -> Iterator[str]:
    """Yield which steps of a run are no points of its curve."""
    num_finite = int((table["loss"] >= 0).sum())
    if num_infinite := len(table["loss"]) - num_finite:
        yield f"{label}: {plural(num_infinite, 'step')} without a finite loss not drawn."
    if num_finite > MAX_STEPS:
        yield f"{label}: one of every {_stride(num_finite)} steps drawn."


def speeds_table(trained: dict[str, Columns]) -> Table:
    """Return a row for each run: medians over its steps, the first left out where there are others."""
    axes = _axes_of(trained.values())
    return Table(
        caption="Medians over steps; of several the first is left out",
        headings=("Run", "Steps", "Skipped", "Last loss", "Tokens/s", "MFU", *(f"Exposed {axis}" for axis in axes)),
        rows=tuple(_speed_row(label, table, axes) for label, table in trained.items()),
    )


def ablation_table(label: str, steps: Columns) -> Table:
    """Return a row for each technique: its speed, its gain over the step it adds to, and exposed communication."""
    axes = _axes_of([steps])
    return Table(
        caption=f"{label}: gain of each technique, medians with quartiles over rounds",
        headings=("Technique", "Over", "Tokens/s", "MFU", "Gain", "from", "to", *(f"Exposed {axis}" for axis in axes)),
        rows=tuple(_ablation_row(steps, row, axes) for row in range(len(steps["technique"]))),
    )


def _axes_of(tables: Iterable[Columns]) -> Sequence[str]:
    """Return the axes that any of the tables has exposed communication of."""
    tables = tuple(tables)
    return [axis for axis in AXES if any(f"exposed_{axis}_ns" in table for table in tables)]


def _points(table: Columns) -> list[tuple[float, float]]:
    is_shown_S = table["loss"] >= 0
    stride = _stride(int(is_shown_S.sum()))
    steps, losses = table["step"][is_shown_S][::stride], table["loss"][is_shown_S][::stride]
    return list(zip(steps.astype(float).tolist(), losses.tolist(), strict=True))


def _stride(num_steps: int) -> int:
    return max(1, -(-num_steps // MAX_STEPS))


def _speed_row(label: str, table: Columns, axes: Sequence[str]) -> tuple[Cell, ...]:
    counted = slice(1 if len(table["step"]) > 1 else 0, None)
    num_skipped, speed = int(table["is_skipped"].sum()), float(np.median(table["tokens_per_s"][counted]))
    return (
        words(label),
        number(len(table["step"]), f"{len(table['step']):,}"),
        number(num_skipped, f"{num_skipped:,}", tone="bad" if num_skipped else ""),
        _number_or_missing(float(table["loss"][-1]), f"{table['loss'][-1]:.4f}"),
        number(speed, f"{speed:,.0f}"),
        _share(float(np.median(table["mfu_fraction"][counted]))),
        *(_exposed(table, axis, counted) for axis in axes),
    )


def _ablation_row(steps: Columns, row: int, axes: Sequence[str]) -> tuple[Cell, ...]:
    speed, base = float(steps["tokens_per_s"][row]), str(steps["base"][row])
    gains = [float(steps[f"gain_fraction{end}"][row]) for end in ("", "_low", "_high")]
    return (
        words(str(steps["technique"][row])),
        words(base),
        number(speed, f"{speed:,.0f}"),
        _share(float(steps["mfu_fraction"][row])),
        *(number(gain, f"{gain:+.1%}") if base else missing() for gain in gains),
        *(_exposed(steps, axis, slice(row, row + 1)) for axis in axes),
    )


def _share(fraction: float) -> Cell:
    return _number_or_missing(fraction, percent(fraction))


def _number_or_missing(value: float, shown: str) -> Cell:
    return number(value, shown) if value >= 0 else missing()


def _exposed(table: Columns, axis: str, rows: slice) -> Cell:
    """Return the median over some rows; missing where the run has no group of the axis."""
    if (name := f"exposed_{axis}_ns") not in table:
        return missing()
    duration_ns = float(np.median(table[name][rows]))
    return number(duration_ns, duration(duration_ns * PS_PER_NS))
