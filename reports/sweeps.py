"""Sweeps on the page: points by two objectives, the Pareto front, and sensitivities."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import Mistake, RecordError, quote
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.reports import axes, svg
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, missing, number, percent, plural, words
from fabrictune.reports.charts import PointChart, Scale
from fabrictune.reports.curves import HEIGHT, TOP, plot_axes
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

POINTS = select("points", "point", "settings", "num_seeds", "is_on_front")
OBJECTIVES = select("objectives", "point", "metric", "unit", "value", "low", "high")
SENSITIVITY = select("sensitivity", "key", "metric", "measure", "value")
DOT, BEST_DOT = 2.5, 5.0  # half the side of a point's mark
MARGIN = 0.05  # of the span, around the points
MAX_ROWS = 64
POINT = "point"  # what a sweep of one objective is drawn over

Ends = FloatArray  # value, low and high of each point, shape (3, P)


def sweeps_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure and a table of sensitivities for each run that is a sweep, or None."""
    blocks: list[Figure | Table] = []
    for run in runs:
        points, objectives, sensitivity = run.table(POINTS), run.rows(OBJECTIVES), run.rows(SENSITIVITY)
        if points is not None and objectives is not None:
            blocks.append(draw_sweep(run.label, points, objectives))
            if sensitivity is not None:
                blocks.append(sensitivity_table(run.label, sensitivity))
    if not blocks:
        return None
    lead = "Each point is one set of settings; of a Pareto-optimal one, no other is better in every objective."
    return Section(anchor="sweep", title="Sweep", lead=lead, blocks=tuple(blocks))


def draw_sweep(label: str, points: Columns, objectives: Columns) -> Figure:
    """Return every point at its first two objectives (of one, over the point's number), and the table of all."""
    chart = sweep_chart(label, points, objectives)
    across, up, drawn_axes = plot_axes(chart.across, chart.up)
    highlighted_last = np.argsort(chart.is_highlighted_P, kind="stable").tolist()
    parts = [drawn_axes, *(_mark(across, up, chart, place) for place in highlighted_last)]
    metrics = _metrics(objectives)
    caption = " ".join((chart.caption, *_about_drawing(chart, len(metrics), len(points["point"]))))
    drawing = svg.figure(TOP + HEIGHT + 40, caption, *parts)
    return Figure(drawing=drawing, caption=caption, table=_points_table(points, objectives, metrics))


def _about_drawing(chart: PointChart, num_objectives: int, num_points: int) -> Iterator[str]:
    """Yield what a reader of the drawing has to know."""
    yield "These are drawn larger."
    if any((ends_3P[1] < ends_3P[2]).any() for ends_3P in (chart.x_3P, chart.y_3P)):
        yield "Lines: 95 % intervals over seeds."
    if num_objectives > 2:
        yield f"Drawn: the first two of {num_objectives} objectives."
    if without := num_points - len(chart.labels):
        yield f"{plural(without, 'point')} without results not drawn."


def sweep_chart(label: str, points: Columns, objectives: Columns) -> PointChart:
    """Return every point at its first two objectives (of one, over the point's number), the Pareto front highlighted.

    A point without results has no place in it. Raises RecordError where the two tables do not fit together.
    """
    _check_points(label, points, objectives)
    metrics = _metrics(objectives)
    across, up = (POINT, *metrics) if len(metrics) == 1 else metrics[:2]
    x_3P, y_3P = (_ends(objectives, name) for name in (across, up))
    shown_P = np.unique(objectives["point"])
    num_best = int(points["is_on_front"].sum())
    return PointChart(
        across=_scale(objectives, across, x_3P),
        up=_scale(objectives, up, y_3P),
        x_3P=x_3P,
        y_3P=y_3P,
        is_highlighted_P=points["is_on_front"][shown_P] == 1,
        labels=tuple(str(points["settings"][point]) for point in shown_P.tolist()),
        caption=f"{label}: {num_best} of {plural(len(shown_P), 'point')} Pareto-optimal.",
    )


def _check_points(label: str, points: Columns, objectives: Columns) -> None:
    """Raise RecordError unless rows of `points` are numbered, and each point with results has every objective once."""
    where, num_points = f"{label}: objectives.point", len(points["point"])
    if (points["point"] != np.arange(num_points)).any():
        raise RecordError(Mistake(where=f"{label}: points.point", found="points out of order", allowed="0, 1, 2, ..."))
    if ((objectives["point"] < 0) | (objectives["point"] >= num_points)).any():
        raise RecordError(Mistake(where=where, found="a point that table 'points' has not"))
    shown = np.unique(objectives["point"])
    for metric in _metrics(objectives):
        if not np.array_equal(np.sort(objectives["point"][objectives["metric"] == metric]), shown):
            found = f"not every point once for {quote(metric)}"
            raise RecordError(Mistake(where=where, found=found))


def _metrics(objectives: Columns) -> list[str]:
    return list(dict.fromkeys(objectives["metric"].tolist()))


def sensitivity_table(label: str, sensitivity: Columns) -> Table:
    """Return a row for each key: its share of each objective's variance, and its rank correlation with it."""
    metrics = list(dict.fromkeys(sensitivity["metric"].tolist()))
    columns = zip(*(sensitivity[name].tolist() for name in ("key", "metric", "measure", "value")), strict=True)
    values = {(key, metric, measure): value for key, metric, measure, value in columns}
    rows = tuple(
        (words(key), *(cell for metric in metrics for cell in _influence(values, key, metric)))
        for key in dict.fromkeys(sensitivity["key"].tolist())
    )
    headings = tuple(name for metric in metrics for name in (f"Variance of {metric}", "Rank correlation"))
    return Table(caption=f"{label}: first-order sensitivity of each key", headings=("Key", *headings), rows=rows)


def _influence(values: Mapping[tuple[str, str, str], float], key: str, metric: str) -> tuple[Cell, Cell]:
    share, rank = (values.get((key, metric, measure)) for measure in ("variance_share", "rank_correlation"))
    return (
        missing() if share is None else number(share, percent(share)),
        missing() if rank is None else number(rank, f"{rank:+.2f}"),
    )


def _ends(objectives: Columns, name: str) -> Ends:
    if name == POINT:
        return np.array([np.unique(objectives["point"])] * 3, np.float64)
    rows = objectives["metric"] == name
    return np.array([objectives[end][rows] for end in ("value", "low", "high")])


def _scale(objectives: Columns, name: str, ends_P: Ends) -> Scale:
    """Return a scale around the points and their intervals, with a margin."""
    low, high = float(ends_P.min()), float(ends_P.max())
    margin = MARGIN * (high - low or abs(high) or 1.0)
    unit = "" if name == POINT else str(objectives["unit"][objectives["metric"] == name][0])
    return Scale(name=name, low=low - margin, high=high + margin, unit=unit)


def _mark(across: axes.PlotAxis, up: axes.PlotAxis, chart: PointChart, place: int) -> Markup:
    """Return a point's square over the lines of its two intervals."""
    x, y = chart.x_3P[:, place], chart.y_3P[:, place]
    style, half = ("fill-4", BEST_DOT) if chart.is_highlighted_P[place] else ("fill-2", DOT)
    left, top = across.at(float(x[0])), up.at(float(y[0]))
    return Markup("").join(
        (
            svg.line(across.at(float(x[1])), top, across.at(float(x[2])), top, "baseline"),
            svg.line(left, up.at(float(y[1])), left, up.at(float(y[2])), "baseline"),
            svg.rectangle(left - half, top - half, 2 * half, 2 * half, style, svg.hint(chart.labels[place])),
        )
    )


def _points_table(points: Columns, objectives: Columns, metrics: Sequence[str]) -> Table:
    rows: dict[int, dict[str, Any]] = {}
    columns = (objectives[name].tolist() for name in ("point", "metric", "unit", "value", "low", "high"))
    for point, metric, unit, value, low, high in zip(*columns, strict=True):
        half = f" ± {format_metric((high - low) / 2, unit)}" if high > low else ""
        rows.setdefault(point, {})[metric] = number(value, format_metric(value, unit) + half)
    ordered = sorted(rows, key=lambda point: -points["is_on_front"][point])[:MAX_ROWS]
    return Table(
        headings=("Settings", "Seeds", "Pareto-optimal", *metrics),
        rows=tuple(
            (
                words(str(points["settings"][point])),
                number(points["num_seeds"][point], f"{points['num_seeds'][point]:,}"),
                words("yes" if points["is_on_front"][point] else ""),
                *(rows[point].get(metric, missing()) for metric in metrics),
            )
            for point in ordered
        ),
        left_out=left_out(len(ordered), len(rows), "point", "points"),
    )
