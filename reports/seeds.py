"""Runs of one scenario under several seeds: the indicators of each run beside their mean and its interval.

Shapes: N runs of a scenario.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.units import Unit, format_metric
from fabrictune.reports import axes, svg
from fabrictune.reports.axes import PlotAxis
from fabrictune.reports.blocks import Figure, Section, Table, number, shortened, words
from fabrictune.reports.curves import MARK_RADIUS, mark_style
from fabrictune.reports.kpis import kpis_by_name
from fabrictune.reports.record_view import Run
from fabrictune.reports.repetitions import Repetitions, label_of, repetitions_of
from fabrictune.reports.verdict import HEADLINE
from fabrictune.topology.ecmp.estimates import Estimate, estimate_mean

LEFT, TOP, ROW_HEIGHT, BAR_HEIGHT, GAP = 240.0, 40.0, 24.0, 12.0, 16.0
MAX_NAME = 30  # characters of a row's name
MAX_GROUPS, MAX_INDICATORS = 16, 4
ROOM = 0.06  # of the range, beyond its ends


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """One indicator of the runs of one scenario."""

    label: str  # of the runs
    values: FloatArray

    @property
    def mean(self) -> Estimate:
        """Their mean, with its 95 % interval by Student's t."""
        return estimate_mean(self.values)


@dataclass(frozen=True, kw_only=True)
class Indicator:
    """An indicator of all scenarios."""

    name: str
    unit: Unit
    spreads: Sequence[Spread]


def seeds_section(runs: Sequence[Run]) -> Section | None:
    """Return the indicators by seed, None where not each scenario was run under three seeds or more."""
    groups = repetitions_of(runs)[:MAX_GROUPS]
    indicators = list(_indicators(groups))[:MAX_INDICATORS] if groups else []
    if not indicators:
        return None
    lead = "What differs between the circles of a row is chance: a change that is smaller than it needs more seeds."
    return Section(anchor="seeds", title="Seeds", lead=lead, blocks=(draw_seeds(indicators),))


def draw_seeds(indicators: Sequence[Indicator]) -> Figure:
    """Return a panel for each indicator: a row a scenario, a circle a run, the mean and its interval."""
    parts: list[Markup] = []
    top = TOP
    for indicator in indicators:
        foot = top + ROW_HEIGHT * len(indicator.spreads)
        axis = _axis(indicator)
        ticks = axis.ticks(5)
        labels = [format_metric(tick, indicator.unit) for tick in ticks]
        parts.append(axes.draw_top(axis, top, foot, ticks, labels, indicator.name))
        for row, spread in enumerate(indicator.spreads):
            parts += _row(spread, axis, top + ROW_HEIGHT * (row + 0.5), indicator.unit)
        top = foot + GAP + TOP
    caption = "Runs of the same scenario. Circles: a seed each; line: mean; shaded: its 95 % interval by Student's t."
    return Figure(drawing=svg.figure(top - TOP, caption, *parts), caption=caption, table=_numbers(indicators))


def _indicators(groups: Sequence[Repetitions]) -> Iterator[Indicator]:
    """Yield the indicators above the fold that all runs have, and that any seed changes."""
    of_group = [list(map(kpis_by_name, group)) for group in groups]
    for name in HEADLINE:
        if not all(name in kpis and math.isfinite(kpis[name].value) for runs in of_group for kpis in runs):
            continue
        spreads = [
            Spread(label=label_of(group), values=np.array([kpis[name].value for kpis in runs]))
            for group, runs in zip(groups, of_group, strict=True)
        ]
        if any(np.ptp(spread.values) > 0 for spread in spreads):
            yield Indicator(name=name, unit=of_group[0][0][name].unit, spreads=spreads)


def _axis(indicator: Indicator) -> PlotAxis:
    ends = [end for spread in indicator.spreads for end in (*spread.values.tolist(), spread.mean.low, spread.mean.high)]
    room = ROOM * (max(ends) - min(ends))
    return PlotAxis(low=min(ends) - room, high=max(ends) + room, start=LEFT, end=svg.WIDTH - 12)


def _row(spread: Spread, axis: PlotAxis, y: float, unit: Unit) -> Iterator[Markup]:
    yield svg.text(0, y + 4, shortened(spread.label, MAX_NAME), class_="tier")
    low, mean, high = map(axis.at, (spread.mean.low, spread.mean.value, spread.mean.high))
    hint = svg.hint(f"mean {format_metric(spread.mean.value, unit)} ± {format_metric(spread.mean.half_width, unit)}")
    yield svg.rectangle(low, y - BAR_HEIGHT / 2, high - low, BAR_HEIGHT, "shade", hint)
    yield svg.line(mean, y - BAR_HEIGHT / 2, mean, y + BAR_HEIGHT / 2, "baseline")
    for value in spread.values.tolist():
        yield svg.tag(
            "circle", svg.hint(format_metric(value, unit)), cx=axis.at(value), cy=y, r=MARK_RADIUS, class_=mark_style(0)
        )


def _numbers(indicators: Sequence[Indicator]) -> Table:
    return Table(
        headings=("Indicator", "Runs", "Seeds", "Mean", "95 % interval, low", "High", "Lowest", "Highest"),
        rows=tuple(
            (
                words(indicator.name),
                words(spread.label),
                number(len(spread.values), f"{len(spread.values):,}"),
                *(
                    number(value, format_metric(value, indicator.unit))
                    for value in (
                        spread.mean.value,
                        spread.mean.low,
                        spread.mean.high,
                        float(spread.values.min()),
                        float(spread.values.max()),
                    )
                ),
            )
            for indicator in indicators
            for spread in indicator.spreads
        ),
        is_sortable=False,
    )
