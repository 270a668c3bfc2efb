"""Calibration: fitted parameters with verdicts, and the model's error over size."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_duration, format_rate
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, missing, number, words
from fabrictune.reports.charts import LineChart, Points, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

PARAMETERS = select("fitted_parameters", "parameter", "value", "low", "high", "unit", "verdict", "reason")
TIMES = select("fitted_times", "series", "size_bytes", "measured_ps", "modelled_ps", "error_fraction")
MAX_ROWS = 100
_PERCENT = 100.0


def calibration_section(runs: Sequence[Run]) -> Section | None:
    """Return the parameters and errors of each fit, or None."""
    fits = [(run.label, run.rows(PARAMETERS), run.rows(TIMES)) for run in runs]
    blocks: list[Table | Figure] = []
    for label, parameters, times in fits:
        if parameters is not None:
            blocks.append(_parameters(label, parameters))
        if times is not None:
            blocks.append(_errors(label, times))
    if not blocks:
        return None
    lead = "Values of a hardware profile from measured times, with 90 % intervals, and what these leave unexplained."
    return Section(anchor="calibration", title="Calibration", lead=lead, blocks=tuple(blocks))


def error_chart(label: str, times: Columns) -> LineChart:
    """Return modelled over measured time, less 1, over size: a curve for each series."""
    times = _drawable(times)
    curves: dict[str, Points] = {}
    for series in dict.fromkeys(times["series"].tolist()):
        is_own = times["series"] == series
        errors = (_PERCENT * times["error_fraction"][is_own]).tolist()
        curves[series] = list(zip(times["size_bytes"][is_own].tolist(), errors, strict=True))
    most = 1.05 * max(1.0, float(np.abs(times["error_fraction"]).max()) * _PERCENT)
    sizes = times["size_bytes"]
    return LineChart(
        across=Scale(name="size", low=int(sizes.min()), high=int(sizes.max()), unit="bytes", is_logarithmic=True),
        up=Scale(name="modelled over measured time, less 100 %", low=-most, high=most, unit="%"),
        curves=curves,
        caption=f"{label}: error of the fitted model by size.",
    )


def _parameters(label: str, table: Columns) -> Table:
    names = ("parameter", "value", "low", "high", "unit", "verdict", "reason")
    rows = zip(*(table[name].tolist() for name in names), strict=True)
    return Table(
        headings=("Parameter", "Value", "90 % interval, low", "High", "Verdict", "Why"),
        rows=tuple(
            (words(name), _value(value, unit), _value(low, unit), _value(high, unit), words(verdict), words(reason))
            for name, value, low, high, unit, verdict, reason in rows
        ),
        caption=f"{label}: fitted parameters.",
    )


def _value(value: float, unit: str) -> Cell:
    if value < 0:
        return missing()
    return number(value, format_rate(value) if unit == "bps" else format_duration(value))


def _drawable(times: Columns) -> Columns:
    """Return the rows that have a place on a logarithmic axis of sizes."""
    has_place = times["size_bytes"] > 0
    return {name: column[has_place] for name, column in times.items()}


def _errors(label: str, times: Columns) -> Figure | Table:
    """Return the errors as a figure, or as a table where none can be drawn."""
    names = ("series", "size_bytes", "measured_ps", "modelled_ps", "error_fraction")
    rows = list(zip(*(times[name].tolist() for name in names), strict=True))
    table = Table(
        headings=("Series", "Size", "Measured", "Modelled", "Error"),
        rows=tuple(
            (
                words(series),
                number(size, format_bytes(size)),
                number(measured, format_duration(measured)),
                number(modelled, format_duration(modelled)),
                number(error, f"{error:+.1%}"),
            )
            for series, size, measured, modelled, error in rows[:MAX_ROWS]
        ),
        left_out=left_out(min(len(rows), MAX_ROWS), len(rows), "size", "fitted_times"),
    )
    if not len(_drawable(times)["size_bytes"]):
        return table
    chart = error_chart(label, times)
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=table)
