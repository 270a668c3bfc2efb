"""Bus bandwidth over size: what was measured beside what a model gives, one figure for each operation."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.units import format_bytes
from fabrictune.reports import svg
from fabrictune.reports.axes import Axis, logarithmic_bytes_axis
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, missing, number
from fabrictune.reports.curves import HEIGHT, LEFT, TOP, Points, draw_curves
from fabrictune.reports.record_view import Run

GB_PER_S = 8e9  # nccl-tests' unit, in bits a second
MAX_ROWS = 64
MODELS: Mapping[str, str] = {"bound": "bound", "fair": "max-min", "engine": "engine"}


def collectives_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure for each operation that was measured or modelled, or None."""
    curves: dict[str, dict[str, Points]] = {}
    for run in runs:
        for operation, label, points in (*_measured(run), *_modelled(run)):
            curves.setdefault(operation, {})[label] = points
    figures = tuple(_draw(operation, own) for operation, own in curves.items())
    if not figures:
        return None
    lead = "nccl-tests' bus bandwidth, comparable with a NIC's rate whatever the operation and the number of ranks."
    return Section(anchor="collectives", title="Collectives", lead=lead, blocks=figures)


def _measured(run: Run) -> Iterator[tuple[str, str, Points]]:
    """Yield operation, label and points of each curve of a measurement."""
    if (table := run.measurements) is None:
        return
    for operation, is_in_place in dict.fromkeys(
        zip(table["operation"].tolist(), table["is_in_place"].tolist(), strict=True)
    ):
        is_own = (table["operation"] == operation) & (table["is_in_place"] == is_in_place)
        label = f"{run.label}, in place" if is_in_place else run.label
        yield operation, label, _points(table["size_bytes"][is_own], table["bus_bandwidth_bps"][is_own])


def _modelled(run: Run) -> Iterator[tuple[str, str, Points]]:
    if (table := run.model) is None:
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


def _draw(operation: str, curves: Mapping[str, Points]) -> Figure:
    sizes = sorted({size for points in curves.values() for size, _ in points})
    highest = max(busbw for points in curves.values() for _, busbw in points)
    across = logarithmic_bytes_axis(sizes[0], sizes[-1], start=LEFT, end=svg.WIDTH - 8)
    up = Axis(low=0, high=1.05 * highest, start=TOP + HEIGHT, end=TOP, unit="GB/s")
    caption = f"{operation.replace('_', ' ')}: bus bandwidth over size."
    table = Table(
        headings=("Size", *curves),
        rows=tuple(_row(size, list(curves.values())) for size in sizes[:MAX_ROWS]),
        left_out=left_out(min(MAX_ROWS, len(sizes)), len(sizes), "size", "measurements"),
        is_folded=True,
    )
    drawing = draw_curves(curves, across, up, names=("size", "bus bandwidth"), caption=caption)
    return Figure(drawing=drawing, caption=caption, table=table)


def _row(size: float, curves: Sequence[Points]) -> tuple[Cell, ...]:
    at_size = [dict(points).get(size) for points in curves]
    cells = (missing() if busbw is None else number(busbw, f"{busbw:.4g}") for busbw in at_size)
    return (number(size, format_bytes(size)), *cells)
