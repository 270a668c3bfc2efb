"""Sweeps on the page: points by two objectives, the Pareto front, and sensitivities."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import Mistake, RecordError, quote
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.reports import axes, svg
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    left_out,
    missing,
    number,
    percent,
    plural,
    words,
)
from fabrictune.reports.charts import PointChart, Scale
from fabrictune.reports.curves import HEIGHT, TOP, plot_axes
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

POINTS = select("points", "point", "settings", "num_seeds", "is_on_front")
OBJECTIVES = select("objectives", "point", "metric", "unit", "is_maximised", "value", "low", "high")
SENSITIVITY = select("sensitivity", "key", "metric", "measure", "value")
DOT, BEST_DOT = 2.5, 5.0  # half the side of a point's mark
MARGIN = 0.05  # of the span, around the points
MAX_ROWS = 64
MAX_NUMBERED = 12  # points with a number beside them; those of the front first
MAX_NAME = 40  # letters of what a number is
TOGETHER = 0.04  # share of the drawing within which points have one label
POINT = "point"  # what a sweep of one objective is drawn over

Ends = FloatArray  # value, low and high of each point, shape (3, P)


def sweeps_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure and a table of sensitivities for each run that is a sweep, or None."""
    blocks: list[Block] = []
    for run in runs:
        points, objectives, sensitivity = run.table(POINTS), run.rows(OBJECTIVES), run.rows(SENSITIVITY)
        if points is not None and objectives is not None:
            blocks += draw_sweep(run.label, points, objectives)
            blocks += law_tables(run)
            if sensitivity is not None:
                blocks.append(sensitivity_table(run.label, sensitivity))
    if not blocks:
        return None
    lead = "Each point is one set of settings; of a Pareto-optimal one, no other is better in every objective."
    return Section(anchor="sweep", title="Sweep", lead=lead, blocks=tuple(blocks))


def draw_sweep(label: str, points: Columns, objectives: Columns) -> list[Figure]:
    """Return a figure of each further objective over the first (of one, over the point's number); all values below."""
    figures = [_draw(chart, len(points["point"])) for chart in sweep_charts(label, points, objectives)]
    table = _points_table(points, objectives, _metrics(objectives))
    return [*figures[:-1], replace(figures[-1], table=table)]


def law_tables(run: Run) -> list[Table]:
    """Return the table of the laws that a sweep ran with, where its record names any."""
    laws = run.record.run.get("laws")
    if not isinstance(laws, list) or not laws:
        return []
    rows = tuple(tuple(words(str(law.get(key, ""))) for key in ("law", "form", "parameters")) for law in laws)
    caption = f"{run.label}: laws as they ran"
    return [Table(caption=caption, headings=("Law", "Form", "Parameters"), rows=rows)]


def _draw(chart: PointChart, num_points: int) -> Figure:
    across, up, drawn_axes = plot_axes(chart.across, chart.up)
    highlighted_last = np.argsort(chart.is_highlighted_P, kind="stable").tolist()
    parts = [drawn_axes, *(_mark(across, up, chart, place) for place in highlighted_last)]
    caption = " ".join((chart.caption, *_about_drawing(chart, num_points)))
    return Figure(drawing=svg.figure(TOP + HEIGHT + 40, caption, *parts), caption=caption)


def _about_drawing(chart: PointChart, num_points: int) -> Iterator[str]:
    """Yield what a reader of the drawing has to know."""
    yield "These are drawn larger."
    if chart.key:
        yield f"Numbers: {'; '.join(f'{number} {name}' for number, name in enumerate(chart.key, 1))}."
    if any((ends_3P[1] < ends_3P[2]).any() for ends_3P in (chart.x_3P, chart.y_3P)):
        yield "Lines: 95 % intervals over seeds."
    if without := num_points - len(chart.labels):
        yield f"{plural(without, 'point')} without results not drawn."


def sweep_charts(label: str, points: Columns, objectives: Columns) -> list[PointChart]:
    """Return every point at each further objective over the first (of one, over the point's number).

    The Pareto front, which is of all objectives, is highlighted; a point without results has no place. Raises
    RecordError where the two tables do not fit together.
    """
    check_points(label, points, objectives)
    first, *others = _metrics(objectives)
    across, ups = (first, others) if others else (POINT, [first])
    return [_chart(label, points, objectives, across, up) for up in ups]


def _chart(label: str, points: Columns, objectives: Columns, across: str, up: str) -> PointChart:
    x_3P, y_3P = (_ends(objectives, name) for name in (across, up))
    shown_P = np.unique(objectives["point"])
    num_best = int(points["is_on_front"].sum())
    is_founded = int(points["num_seeds"].max(initial=0)) > 1
    settings = [str(points["settings"][point]) for point in shown_P.tolist()]
    is_best_P = points["is_on_front"][shown_P] == 1
    order = np.argsort(~is_best_P, kind="stable")[:MAX_NUMBERED].tolist()
    scales = _scale(objectives, across, x_3P), _scale(objectives, up, y_3P)
    founded = "" if is_founded else " One seed: this front is unfounded."
    return PointChart(
        across=scales[0],
        up=scales[1],
        x_3P=x_3P,
        y_3P=y_3P,
        is_highlighted_P=is_best_P,
        labels=tuple(_labels(settings, objectives, shown_P)),
        numbers=_numbers(order, x_3P[0], y_3P[0], *scales),
        key=_key(settings, order),
        caption=f"{label}: {num_best} of {plural(len(shown_P), 'point')} Pareto-optimal.{founded}",
    )


def _labels(settings: Sequence[str], objectives: Columns, shown_P: IntArray) -> Iterator[str]:
    """Yield the settings of each point, and its value in every objective."""
    for point, text in zip(shown_P.tolist(), settings, strict=True):
        rows = np.flatnonzero(objectives["point"] == point).tolist()
        values = (
            f"{objectives['metric'][row]} {format_metric(objectives['value'][row], str(objectives['unit'][row]))}"
            for row in rows
        )
        yield f"{text}: {', '.join(values)}"


def _key(settings: Sequence[str], order: Sequence[int]) -> tuple[str, ...]:
    """Return the varied values of the points that have a number, without their keys."""
    names = [", ".join(part.partition(" = ")[2] for part in settings[place].split("; ")) for place in order]
    return tuple(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 3]}..." for name in names)


def _numbers(order: Sequence[int], x_P: FloatArray, y_P: FloatArray, across: Scale, up: Scale) -> tuple[str, ...]:
    """Return the number of each point in `order`, from 1; points that lie together have one label, at the first."""
    shares_P2 = np.stack([(x_P - across.low) / (across.high - across.low), (y_P - up.low) / (up.high - up.low)], axis=1)
    labels: dict[int, list[int]] = {}  # place of the first of points that lie together -> their numbers
    for place_in_key, place in enumerate(order, 1):
        leaders = [first for first in labels if (np.abs(shares_P2[first] - shares_P2[place]) < TOGETHER).all()]
        labels.setdefault((leaders or [place])[0], []).append(place_in_key)
    return tuple(" ".join(map(str, labels.get(place, ()))) for place in range(len(x_P)))


def check_points(label: str, points: Columns, objectives: Columns) -> None:
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


def rows_best_first(objectives: Columns, metric: str) -> IntArray:
    """Return the rows of one objective, the best first."""
    rows = np.flatnonzero(objectives["metric"] == metric)
    sign = -1 if len(rows) and objectives["is_maximised"][rows[0]] else 1
    return rows[np.argsort(sign * objectives["value"][rows], kind="stable")]


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
            _beside(chart.numbers[place], left, top),
        )
    )


def _beside(numbers: str, left: float, top: float) -> Markup:
    """Return a point's numbers to its right, or to its left where there is no room."""
    if not numbers:
        return Markup("")
    fits = left + BEST_DOT + 4 + svg.LETTER_WIDTH * len(numbers) <= svg.WIDTH
    x, anchor = (left + BEST_DOT + 4, None) if fits else (left - BEST_DOT - 4, "end")
    return svg.text(x, top - BEST_DOT, numbers, class_="tick", anchor=anchor)


def _points_table(points: Columns, objectives: Columns, metrics: Sequence[str]) -> Table:
    rows: dict[int, dict[str, Any]] = {}
    columns = (objectives[name].tolist() for name in ("point", "metric", "unit", "value", "low", "high"))
    for point, metric, unit, value, low, high in zip(*columns, strict=True):
        half = f" ± {format_metric((high - low) / 2, unit)}" if high > low else ""
        rows.setdefault(point, {})[metric] = number(value, format_metric(value, unit) + half)
    best_first: list[int] = objectives["point"][rows_best_first(objectives, metrics[0])].tolist()
    ordered = sorted(best_first, key=lambda point: -points["is_on_front"][point])[:MAX_ROWS]
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
