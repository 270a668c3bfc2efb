"""Bus bandwidth over size, measured and modelled, one figure for each operation; and who begins last in a bench."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_number
from fabrictune.reports.blocks import Cell, Figure, Section, Table, missing, number, plural
from fabrictune.reports.charts import LineChart, Mark, Points, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.fitted_lines import fitted_curves, fitted_points
from fabrictune.reports.late_ranks import late_blocks
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

GB_PER_S = 8e9  # nccl-tests' unit, in bits a second
MAX_ROWS = 64
MEASUREMENTS = select("measurements", "operation", "is_in_place", "num_ranks", "size_bytes", "bus_bandwidth_bps")
MODEL = select("model", "operation", "num_ranks", "size_bytes", "bound_busbw_bps", "fair_busbw_bps", "engine_busbw_bps")
Curve = tuple[str, str, Points]  # operation, label, points
MODELS: Mapping[str, str] = {"bound": "bound", "fair": "max-min", "engine": "engine"}


def collectives_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure for each operation that was measured or modelled and for the ranks of each bench, or None."""
    blocks = (*map(_draw, bandwidth_charts(runs)), *late_blocks(runs))
    if not blocks:
        return None
    lead = "Bus bandwidth as nccl-tests defines it: comparable with the NIC rate for any operation and number of ranks."
    return Section(anchor="collectives", title="Collectives", lead=lead, blocks=blocks)


def bandwidth_charts(runs: Sequence[Run]) -> list[LineChart]:
    """Return bus bandwidth over size, a chart for each operation that was measured or modelled at any size above 0.

    Fitted lines are over the points that they were fitted to: those of a bench on the page, else of their own record.
    """
    own = _by_operation(curve for run in runs for curve in _fitted_to(run))
    measured = {**own, **_by_operation(curve for run in runs for curve in _measured(run))}
    modelled = _by_operation(curve for run in runs for curve in _modelled(run))
    return [
        _chart(operation, measured.get(operation, {}), modelled.get(operation, {}), runs)
        for operation in dict.fromkeys((*measured, *modelled))
    ]


def _by_operation(curves: Iterable[Curve]) -> dict[str, dict[str, Points]]:
    """Return the points of each operation's curves that have any, by their labels."""
    by_operation: dict[str, dict[str, Points]] = {}
    for operation, label, points in curves:
        if points:
            by_operation.setdefault(operation, {})[label] = points
    return by_operation


def _fitted_to(run: Run) -> Iterator[Curve]:
    for operation, name, sizes, busbw_bps in fitted_points(run):
        yield operation, f"{run.label}: {name}", _points(sizes, busbw_bps)


def _measured(run: Run) -> Iterator[Curve]:
    """Yield operation, label and points of each curve of a measurement."""
    if (table := run.table(MEASUREMENTS)) is None:
        return
    for operation, ranks, is_own in _series(table):
        for is_in_place in (0, 1):
            is_curve = is_own & (table["is_in_place"] == is_in_place)
            label = f"{run.label}{ranks}, in place" if is_in_place else f"{run.label}{ranks}"
            yield operation, label, _points(table["size_bytes"][is_curve], table["bus_bandwidth_bps"][is_curve])


def _modelled(run: Run) -> Iterator[Curve]:
    if (table := run.table(MODEL)) is None:
        return
    for operation, ranks, is_own in _series(table):
        for column, name in MODELS.items():
            is_curve = is_own & (table[f"{column}_busbw_bps"] >= 0)
            points = _points(table["size_bytes"][is_curve], table[f"{column}_busbw_bps"][is_curve])
            yield operation, f"{run.label}{ranks}: {name}", points


def _series(table: Columns) -> Iterator[tuple[str, str, BoolArray]]:
    """Yield each operation and group size: name, ", 16 ranks" where an operation has groups of several sizes, rows."""
    for operation in dict.fromkeys(table["operation"].tolist()):
        is_operation = table["operation"] == operation
        sizes = np.unique(table["num_ranks"][is_operation]).tolist()
        for num_ranks in sizes:
            name = f", {plural(num_ranks, 'rank')}" if len(sizes) > 1 else ""
            yield operation, name, is_operation & (table["num_ranks"] == num_ranks)


def _points(size_bytes: IntArray, busbw_bps: FloatArray) -> Points:
    """Return the points in order of size; rows of size 0 have no place on a logarithmic axis."""
    order = np.lexsort((busbw_bps, size_bytes))
    pairs = zip(size_bytes[order].tolist(), (busbw_bps[order] / GB_PER_S).tolist(), strict=True)
    return [(size, busbw) for size, busbw in pairs if size > 0]


def _chart(
    operation: str, measured: Mapping[str, Points], modelled: Mapping[str, Points], runs: Sequence[Run]
) -> LineChart:
    curves = {**measured, **modelled}
    sizes = sorted({size for points in curves.values() for size, _ in points})
    for run in runs:
        for name, busbw_bps in fitted_curves(run, operation, sizes):
            curves[f"{run.label}: {name}"] = [
                (size, bps / GB_PER_S) for size, bps in zip(sizes, busbw_bps, strict=True)
            ]
    highest = max(busbw for points in curves.values() for _, busbw in points)
    circles = " Circles: measured." if measured else ""
    return LineChart(
        across=Scale(name="size", low=min(sizes), high=max(sizes), unit="bytes", is_logarithmic=True),
        up=Scale(name="bus bandwidth", low=0, high=1.05 * highest, unit="GB/s"),
        curves=curves,
        marks={label: [_mark(size, busbw) for size, busbw in points] for label, points in measured.items()},
        caption=f"{operation.replace('_', ' ')}: bus bandwidth by message size.{circles}",
    )


def _mark(size: float, busbw: float) -> Mark:
    return Mark(across=size, up=busbw, hint=f"{format_bytes(size)}: {format_number(busbw)} GB/s")


def _draw(chart: LineChart) -> Figure:
    sizes = sorted({size for points in chart.curves.values() for size, _ in points})
    rest = len(sizes) - MAX_ROWS
    table = Table(
        headings=("Size", *chart.curves),
        rows=tuple(_row(size, list(chart.curves.values())) for size in sizes[:MAX_ROWS]),
        left_out=f"{plural(rest, 'larger size')} in the tables of the records." if rest > 0 else "",
    )
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=table)


def _row(size: float, curves: Sequence[Points]) -> tuple[Cell, ...]:
    at_size = ([busbw for at, busbw in points if at == size] for points in curves)
    return (number(size, format_bytes(size)), *map(_bandwidths, at_size))


def _bandwidths(busbws: Sequence[float]) -> Cell:
    """Return the bandwidth at a size, lowest and highest where it was measured more than once."""
    if not busbws:
        return missing()
    low, high = busbws[0], busbws[-1]
    return number(high, format_number(high) if low == high else f"{format_number(low)} to {format_number(high)}")
