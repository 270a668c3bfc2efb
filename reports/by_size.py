"""Slowdown of transfers by their size: percentiles of each class of sizes.

Shapes: F flows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.metrics.transfers import slowdowns
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes
from fabrictune.reports.blocks import Figure, Table, number, plural, words
from fabrictune.reports.charts import LineChart, Mark, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.distributions import WIDE, percentile_name

FRACTIONS = (0.5, 0.95, 0.99)
MAX_SIZES = 12  # each a class of its own; of more, a class is about a tenth of the transfers
TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
UNIT = "ratio"
NO_POINT = " Where so many transfers never finished there is none."


@dataclass(frozen=True, kw_only=True)
class SizeClass:
    """Transfers of about one size."""

    up_to_bytes: int
    num_transfers: int
    slowdowns: tuple[float, ...]  # at FRACTIONS; infinite where so many never finished


Classes = Mapping[str, Sequence[SizeClass]]  # of each run, by its label


def size_classes(flows: Columns) -> list[SizeClass]:
    """Return the classes of a run in order of size, without transfers whose time alone is not known."""
    slowdown_F, bytes_F = slowdowns(flows), flows["bytes"]
    is_known_F = ~np.isnan(slowdown_F)
    if not is_known_F.all():
        slowdown_F, bytes_F = slowdown_F[is_known_F], bytes_F[is_known_F]
    edges = _edges(bytes_F)
    class_F = np.searchsorted(edges, bytes_F)
    return [
        SizeClass(
            up_to_bytes=int(edges[place]),
            num_transfers=int((is_own_F := class_F == place).sum()),
            slowdowns=tuple(percentiles(slowdown_F[is_own_F], FRACTIONS).tolist()),
        )
        for place in np.unique(class_F).tolist()
    ]


def draw_slowdowns(classes: Classes) -> Figure | None:
    """Return slowdown by size with its numbers, None where no run has transfers of several sizes."""
    chart = slowdown_chart(classes)
    if chart is None:
        return None
    headings = ("Run", "Size, up to", "Transfers", *(f"{percentile_name(fraction)} slowdown" for fraction in FRACTIONS))
    rows = tuple(
        (
            words(label),
            number(each.up_to_bytes, format_bytes(each.up_to_bytes)),
            number(each.num_transfers, f"{each.num_transfers:,}"),
            *(number(value, format_metric(value, UNIT)) for value in each.slowdowns),
        )
        for label, own in classes.items()
        for each in own
    )
    return Figure(drawing=draw_curves(chart), caption=chart.caption, table=Table(headings=headings, rows=rows))


def slowdown_chart(classes: Classes) -> LineChart | None:
    """Return percentiles of slowdown over size: all of one run, of several the highest percentile.

    None where no run has transfers of several sizes.
    """
    if max((len(own) for own in classes.values()), default=0) < 2:
        return None
    last = len(FRACTIONS) - 1
    if len(classes) == 1:
        ((_, own),) = classes.items()
        marks = {percentile_name(fraction): _marks(own, place) for place, fraction in enumerate(FRACTIONS)}
    else:
        marks = {label: _marks(own, last) for label, own in classes.items()}
    every = [mark for own_marks in marks.values() for mark in own_marks]
    if not every:
        return None
    sizes, values = [mark.across for mark in every], [mark.up for mark in every]
    is_wide = max(values) >= WIDE * min(values) > 0
    which = "" if len(classes) == 1 else f", {percentile_name(FRACTIONS[last])}"
    num_points = sum(map(len, classes.values())) * (len(marks) // len(classes))
    gaps = "" if len(every) == num_points else NO_POINT
    return LineChart(
        across=Scale(name="size", low=min(sizes), high=max(sizes), unit="bytes", is_logarithmic=True),
        up=Scale(
            name=f"slowdown{which}",
            low=0.8 * min(values) if is_wide else 0,
            high=1.1 * max(values),
            is_logarithmic=is_wide,
        ),
        curves={label: [(mark.across, mark.up) for mark in own_marks] for label, own_marks in marks.items()},
        marks=marks,
        caption=(
            f"Slowdown by size{which}: completion time over what the transfer takes alone. A circle is the transfers "
            f"up to that size, above the one before.{gaps}"
        ),
    )


def _marks(own: Sequence[SizeClass], place: int) -> list[Mark]:
    """Return a percentile of each class in which so many finished."""
    return [
        Mark(
            across=each.up_to_bytes,
            up=each.slowdowns[place],
            hint=f"up to {format_bytes(each.up_to_bytes)}: {percentile_name(FRACTIONS[place])} "
            f"{format_metric(each.slowdowns[place], UNIT)}, {plural(each.num_transfers, 'transfer')}",
        )
        for each in own
        if np.isfinite(each.slowdowns[place])
    ]


def _edges(bytes_F: IntArray) -> IntArray:
    """Return the largest size of each class: each size, or of many those that part the transfers into tenths."""
    if not len(bytes_F) or bytes_F.min() == bytes_F.max():
        return np.asarray(bytes_F[:1])
    sizes = np.unique(bytes_F)
    return sizes if len(sizes) <= MAX_SIZES else np.unique(percentiles(bytes_F, TENTHS)).astype(np.int64)
