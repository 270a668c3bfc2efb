"""Bus bandwidth over size, measured and modelled, one figure for each operation."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.units import format_bytes
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, missing, number
from fabrictune.reports.charts import LineChart, Points, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

GB_PER_S = 8e9  # nccl-tests' unit, in bits a second
MAX_ROWS = 64
MEASUREMENTS = select("measurements", "operation", "is_in_place", "size_bytes", "bus_bandwidth_bps")
MODEL = select("model", "operation", "size_bytes", "bound_busbw_bps", "fair_busbw_bps", "engine_busbw_bps")
MODELS: Mapping[str, str] = {"bound": "bound", "fair": "max-min", "engine": "engine"}


def collectives_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure for each operation that was measured or modelled, or None."""
    figures = tuple(_draw(chart) for chart in bandwidth_charts(runs))
    if not figures:
        return None
    lead = "Bus bandwidth as nccl-tests defines it: comparable with the NIC rate for any operation and number of ranks."
    return Section(anchor="collectives", title="Collectives", lead=lead, blocks=figures)


def bandwidth_charts(runs: Sequence[Run]) -> list[LineChart]:
    """Return bus bandwidth over size, a chart for each operation that was measured or modelled."""
    curves: dict[str, dict[str, Points]] = {}
    for run in runs:
        for operation, label, points in (*_measured(run), *_modelled(run)):
            curves.setdefault(operation, {})[label] = points
    return [_chart(operation, own) for operation, own in curves.items()]


def _measured(run: Run) -> Iterator[tuple[str, str, Points]]:
    """Yield operation, label and points of each curve of a measurement."""
    if (table := run.table(MEASUREMENTS)) is None:
        return
    for operation, is_in_place in dict.fromkeys(
        zip(table["operation"].tolist(), table["is_in_place"].tolist(), strict=True)
    ):
        is_own = (table["operation"] == operation) & (table["is_in_place"] == is_in_place)
        label = f"{run.label}, in place" if is_in_place else run.label
        yield operation, label, _points(table["size_bytes"][is_own], table["bus_bandwidth_bps"][is_own])


def _modelled(run: Run) -> Iterator[tuple[str, str, Points]]:
    if (table := run.table(MODEL)) is None:
        return
    for operation in dict.fromkeys(table["operation"].tolist()):
        for column, name in MODELS.items():
            is_own = (table["operation"] == operation) & (table[f"{column}_busbw_bps"] >= 0)
            if is_own.any():
                points = _points(table["size_bytes"][is_own], table[f"{column}_busbw_bps"][is_own])
                yield operation, f"{run.label}: {name}", points


def _points(size_bytes: IntArray, busbw_bps: FloatArray) -> Points:
    """Return the points in order of size; rows of size 0 have no place on a logarithmic axis."""
    order = np.lexsort((busbw_bps, size_bytes))
    pairs = zip(size_bytes[order].tolist(), (busbw_bps[order] / GB_PER_S).tolist(), strict=True)
    return [(size, busbw) for size, busbw in pairs if size > 0]


def _chart(operation: str, curves: Mapping[str, Points]) -> LineChart:
    sizes = [size for points in curves.values() for size, _ in points]
    highest = max(busbw for points in curves.values() for _, busbw in points)
    return LineChart(
        across=Scale(name="size", low=min(sizes), high=max(sizes), unit="bytes", is_logarithmic=True),
        up=Scale(name="bus bandwidth", low=0, high=1.05 * highest, unit="GB/s"),
        curves=curves,
        caption=f"{operation.replace('_', ' ')}: bus bandwidth by message size.",
    )


def _draw(chart: LineChart) -> Figure:
    sizes = sorted({size for points in chart.curves.values() for size, _ in points})
    table = Table(
        headings=("Size", *chart.curves),
        rows=tuple(_row(size, list(chart.curves.values())) for size in sizes[:MAX_ROWS]),
        left_out=left_out(min(MAX_ROWS, len(sizes)), len(sizes), "size", "measurements"),
        is_folded=True,
    )
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=table)


def _row(size: float, curves: Sequence[Points]) -> tuple[Cell, ...]:
    at_size = [dict(points).get(size) for points in curves]
    cells = (missing() if busbw is None else number(busbw, f"{busbw:.4g}") for busbw in at_size)
    return (number(size, format_bytes(size)), *cells)
