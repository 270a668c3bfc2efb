"""Axes: from quantities to positions on paper, with round ticks in one unit that suits them all."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

from fabrictune.foundation.units import (
    BYTE_UNITS,
    DURATION_UNITS,
    RATE_UNITS,
    format_bytes,
    format_duration,
    format_rate,
    without_exponent,
)
from fabrictune.reports import svg
from fabrictune.reports.charts import Band, Scale

DURATION_LADDER = ("ps", "ns", "us", "ms", "s")
BYTE_LADDER = ("B", "KB", "MB", "GB", "TB")
RATE_LADDER = ("bps", "Kbps", "Mbps", "Gbps", "Tbps")
LADDERS = {
    "ps": (DURATION_UNITS, DURATION_LADDER),
    "bytes": (BYTE_UNITS, BYTE_LADDER),
    "bps": (RATE_UNITS, RATE_LADDER),
}
FORMATS: Mapping[str, Callable[[float], str]] = {"ps": format_duration, "bytes": format_bytes, "bps": format_rate}
CROWD = 1.5  # times the ticks asked for that a logarithmic axis may have
MIN_BAND = 1.5  # width of a band
NEAR_END = 0.08  # of a logarithmic axis: no label of its end so near to another


@dataclass(frozen=True, kw_only=True)
class PlotAxis:
    """A scale from quantities `low..high` to positions `start..end`, linear or logarithmic.

    A quantity below a logarithmic scale, zero with it, is at its start.
    """

    low: float
    high: float
    start: float
    end: float
    unit: str = ""  # of the tick labels
    per_unit: float = 1  # quantity of one such unit
    is_logarithmic: bool = False  # then low is positive
    show: Callable[[float], str] | None = None  # tick labels that have units of their own

    def at(self, quantity: float) -> float:
        """Return the position of a quantity."""
        if self.high <= self.low:
            return (self.start + self.end) / 2
        if self.is_logarithmic:
            share = log10(max(quantity, self.low) / self.low) / log10(self.high / self.low)
        else:
            share = (quantity - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        """Return about as many round quantities within the scale: 1, 2 or 5 times a power of ten, or that far apart."""
        if self.is_logarithmic:
            return self._logarithmic_ticks(about)
        span = (self.high - self.low) / self.per_unit
        if span <= 0:
            return [self.low]
        rough = span / about
        power = 10 ** floor(log10(rough))
        step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough * 0.999)
        first, last = ceil(self.low / self.per_unit / step - 1e-9), floor(self.high / self.per_unit / step + 1e-9)
        return [count * step * self.per_unit for count in range(first, last + 1)]

    def _logarithmic_ticks(self, about: int) -> list[float]:
        """Return 1, 2 and 5 times each power of ten, where there is room; of a short scale also the ends."""
        ticks = self._decades((1, 2, 5))
        if len(ticks) > CROWD * about:
            ticks = self._decades((1,))
        ticks = ticks[:: ceil(len(ticks) / (CROWD * about))] if ticks else []
        ends = [self.low, self.high] if len(ticks) < 3 else []
        room = NEAR_END * abs(self.end - self.start)
        return sorted(
            {*ticks, *(end for end in ends if all(abs(self.at(end) - self.at(tick)) > room for tick in ticks))}
        )

    def _decades(self, multiples: tuple[int, ...]) -> list[float]:
        """Return the multiples of each power of ten within the scale."""
        powers = range(floor(log10(self.low / self.per_unit)), ceil(log10(self.high / self.per_unit)) + 1)
        ticks = (multiple * 10.0**power * self.per_unit for power in powers for multiple in multiples)
        return [tick for tick in ticks if self.low <= tick <= self.high]

    def label(self, quantity: float) -> str:
        """Return a tick's number, without its unit unless each has its own."""
        return self.show(quantity) if self.show else without_exponent(quantity / self.per_unit, 6)


def duration_axis(low_ps: float, high_ps: float, *, start: float, end: float) -> PlotAxis:
    """Return an axis of durations in the largest unit that leaves whole numbers in sight."""
    return _with_unit(low_ps, high_ps, start, end, DURATION_UNITS, DURATION_LADDER)


def bytes_axis(high_bytes: float, *, start: float, end: float) -> PlotAxis:
    """Return an axis of sizes from zero."""
    return _with_unit(0, high_bytes, start, end, BYTE_UNITS, BYTE_LADDER)


def axis_of(scale: Scale, *, start: float, end: float) -> PlotAxis:
    """Return the axis that draws a scale from `start` to `end`; on a logarithmic one each tick has its own unit.

    A scale that begins at or below 0 is drawn as a linear one.
    """
    is_logarithmic = scale.is_logarithmic and scale.high >= scale.low > 0
    show = FORMATS.get(scale.unit) if is_logarithmic else None
    if scale.unit in LADDERS and show is None:
        return _with_unit(scale.low, scale.high, start, end, *LADDERS[scale.unit])
    return PlotAxis(
        low=scale.low,
        high=scale.high,
        start=start,
        end=end,
        unit="" if show else scale.unit,
        is_logarithmic=is_logarithmic,
        show=show,
    )


def draw_over_time(across: PlotAxis, top: float, foot: float, clock: str, *children: Markup) -> Markup:
    """Return what is drawn over an axis of time in ps, so that the page's script can show a stretch of it.

    Plots on the same clock show the same stretch.
    """
    ends = {"data_low": across.low, "data_high": across.high, "data_left": across.start, "data_right": across.end}
    return svg.tag("g", *children, class_="plot", data_clock=clock, data_top=top, data_foot=foot, **ends)


def draw_bottom(axis: PlotAxis, y: float, top: float, name: str) -> Markup:
    """Return ticks, grid lines up to `top` and the axis's name under a plot whose lower edge is `y`."""
    parts = []
    for tick in axis.ticks(8):
        parts.append(svg.line(axis.at(tick), top, axis.at(tick), y, "grid"))
        parts.append(svg.centred_text(axis.at(tick), y + 16, axis.label(tick), "tick"))
    named = svg.text(axis.end, y + 32, full_name(axis, name), class_="axis", anchor="end")
    return svg.tag("g", *parts, class_="across") + named


def draw_left(axis: PlotAxis, x: float, right: float, name: str) -> Markup:
    """Return ticks, grid lines to `right` and the axis's name for a plot whose left edge is `x`."""
    parts = []
    for tick in axis.ticks(4):
        parts.append(svg.line(x, axis.at(tick), right, axis.at(tick), "grid"))
        parts.append(svg.text(x - 8, axis.at(tick) + 4, axis.label(tick), class_="tick", anchor="end"))
    parts.append(svg.text(x, axis.end - 8, full_name(axis, name), class_="axis"))
    return Markup("").join(parts)


def draw_top(
    axis: PlotAxis, top: float, foot: float, ticks: Sequence[float], labels: Sequence[str], name: str
) -> Markup:
    """Return ticks above a plot whose rows are between `top` and `foot`, grid lines down to it, and the axis's name."""
    parts = [svg.text(axis.start, top - 23, name, class_="axis")]
    for tick, label in zip(ticks, labels, strict=True):
        parts.append(svg.line(axis.at(tick), top - 2, axis.at(tick), foot, "grid"))
        parts.append(svg.centred_text(axis.at(tick), top - 6, label, "tick"))
    return Markup("").join(parts)


def draw_bands(bands: Iterable[Band], across: PlotAxis, top: float, foot: float) -> Markup:
    """Return a band over the height of a plot for each, as far as it is on the axis."""
    parts = []
    for band in bands:
        begin, end = (across.at(min(max(quantity, across.low), across.high)) for quantity in (band.low, band.high))
        width = max(end - begin, MIN_BAND)
        parts.append(svg.rectangle(begin, top, width, foot - top, "fault-span", svg.hint(band.hint)))
    return Markup("").join(parts)


def full_name(axis: PlotAxis, name: str) -> str:
    """Return what stands at an axis: its name, unit, and whether it is logarithmic."""
    return ", ".join(filter(None, (name, axis.unit, "logarithmic" if axis.is_logarithmic else "")))


def _with_unit(
    low: float, high: float, start: float, end: float, units: Mapping[str, int], ladder: tuple[str, ...]
) -> PlotAxis:
    unit = next((name for name in reversed(ladder) if high >= units[name]), ladder[0])
    return PlotAxis(low=low, high=high, start=start, end=end, unit=unit, per_unit=units[unit])
