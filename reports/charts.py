"""Charts as data: what the page draws as SVG, and `fabrictune.plot` with matplotlib.

Shapes: P points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.reports.blocks import plural

Points = Sequence[tuple[float, float]]  # in the units of the scales


@dataclass(frozen=True, kw_only=True)
class Scale:
    """One direction of a chart: a quantity between two values."""

    name: str
    low: float
    high: float
    unit: str = ""  # ps, bytes or bps, shown with a prefix that suits; any other is shown as it is
    is_logarithmic: bool = False  # as far as its values allow: `with_room`


@dataclass(frozen=True, kw_only=True)
class Band:
    """A stretch of the direction across in which something held."""

    low: float
    high: float  # infinite where it held to the end
    hint: str  # what held


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A point of a curve that is marked."""

    across: float
    up: float
    hint: str  # what it is


@dataclass(frozen=True, kw_only=True)
class LineChart:
    """Curves by their labels on one pair of scales."""

    across: Scale
    up: Scale
    curves: Mapping[str, Points]
    caption: str
    bands: Sequence[Band] = ()  # beneath the curves
    marks: Mapping[str, Sequence[Mark]] = field(default_factory=dict)  # on curves, by their labels


@dataclass(frozen=True, kw_only=True)
class StackChart:
    """Bars beside each other, each from one end to the next, of shares stacked in the order of their names."""

    across: Scale
    up: Scale
    ends: Sequence[float]  # of the bars; the first begins where the scale does
    shares: Mapping[str, Sequence[float]]
    lines: Mapping[str, Points]  # over the bars
    caption: str


@dataclass(frozen=True, kw_only=True, eq=False)
class PointChart:
    """Points with intervals on one pair of scales; some of them highlighted."""

    across: Scale
    up: Scale
    x_3P: FloatArray  # value, low and high of each point
    y_3P: FloatArray
    is_highlighted_P: BoolArray
    labels: tuple[str, ...]  # shown on request
    numbers: tuple[str, ...]  # shown beside the point; one point has those of all that lie with it, these have ""
    key: tuple[str, ...]  # what each number is, from 1 on: "swift, 50 KB"
    caption: str


def with_room(chart: LineChart) -> LineChart:
    """Return the chart without the points that its logarithmic scales have no place for.

    Those are at or below 0. A scale's name counts them; one without anything above 0 becomes linear and keeps all.
    """
    kept = dict(chart.curves)
    scales = []
    for direction, scale in enumerate((chart.across, chart.up)):
        values = [point[direction] for points in kept.values() for point in points]
        above = [value for value in values if value > 0]
        if not scale.is_logarithmic or not above:
            scales.append(replace(scale, is_logarithmic=False))
            continue
        kept = {label: [point for point in points if point[direction] > 0] for label, points in kept.items()}
        missing = len(values) - len(above)
        name = f"{scale.name}, without {plural(missing, 'point')} at or below 0" if missing else scale.name
        scales.append(replace(scale, name=name, low=scale.low if scale.low > 0 else min(above)))
    across, up = scales
    return replace(chart, across=across, up=up, curves=kept)
