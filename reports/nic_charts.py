"""Charts of one monitored NIC: its rates over time with the link's, and under them what was marked, paused or lost.

Shapes: S rows of a counter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_S, format_number, format_rate
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.reports import axes, svg
from fabrictune.reports.blocks import Figure, Table, duration, number, percent, plural, words
from fabrictune.reports.charts import Scale
from fabrictune.reports.curves import line_style

LEFT, TOP, HEIGHT = 64.0, 62.0, 150.0
LANE_HEIGHT, LANE_GAP = 90.0, 34.0  # of the lane of congestion, and of the space above it
MAX_BANDS, MAX_POINTS = 64, 600
CARRIED = (CounterClass.BYTES_SENT.value, CounterClass.BYTES_RECEIVED.value)
CONGESTION = {
    CounterClass.ECN_MARKED.value: "ECN marks",
    CounterClass.CNP_SENT.value: "CNPs sent",
    CounterClass.CNP_HANDLED.value: "CNPs handled",
    CounterClass.PAUSE_RECEIVED.value: "pauses received",
    CounterClass.PAUSE_SENT.value: "pauses sent",
    CounterClass.SEQUENCE_ERROR.value: "out of sequence",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Drawn:
    """Rates of one device, and the times of which something is told."""

    label: str  # of the run
    title: str
    time_name: str
    curves: dict[str, tuple[FloatArray, FloatArray]]  # bits per second over seconds
    congestion: dict[str, tuple[FloatArray, FloatArray]]  # packets per second
    limit_bps: float  # -1 where it is not known
    bands: Sequence[tuple[float, float, str]]  # from, to, what
    band_name: str


def by_second(label: str, device: str, seconds: Columns, limit_bps: float) -> Figure:
    """Return a device's rates by the second, with its flaps."""
    own = {name: column[seconds["device"] == device] for name, column in seconds.items()}
    curves = {}
    for counter_class in CARRIED:
        if (rows := _first_counter(own, counter_class)) is not None:
            name = counter_class.removeprefix("bytes ")
            curves[f"{name}, mean"] = own["time_s"][rows], 8 * own["mean_rate"][rows]
            curves[f"{name}, peak between samples"] = own["time_s"][rows], 8 * own["peak_rate"][rows]
    is_down = (own["class"].astype(str) == CounterClass.LINK_DOWN.value) & (own["mean_rate"] > 0)
    drawn = _Drawn(
        label=label,
        title=f"{device} by the second",
        time_name="time since the start",
        curves=curves,
        congestion=_congestion(own, "mean_rate"),
        limit_bps=limit_bps,
        bands=[(time_s - 1, time_s, "link down") for time_s in own["time_s"][is_down].tolist()],
        band_name="flap",
    )
    return _draw(drawn)


def by_sample(label: str, device: str, samples: Columns, phases: Columns | None, limit_bps: float) -> Figure:
    """Return a device's rates by the sample, with its transfer phases."""
    own = {name: column[samples["device"] == device] for name, column in samples.items()}
    curves = {
        counter_class.removeprefix("bytes "): (own["time_s"][rows], 8 * own["rate"][rows])
        for counter_class in CARRIED
        if (rows := _first_counter(own, counter_class)) is not None
    }
    bands: list[tuple[float, float, str]] = []
    if phases is not None:
        columns = (phases[name].tolist() for name in ("device", "direction", "begin_s", "duration_s", "share_fraction"))
        bands = [
            (begin_s, begin_s + duration_s, f"{direction}: {percent(share)} of the link")
            for name, direction, begin_s, duration_s, share in zip(*columns, strict=True)
            if name == device
        ]
    drawn = _Drawn(
        label=label,
        title=f"{device}, the newest samples",
        time_name="time since the start",
        curves=curves,
        congestion=_congestion(own, "rate"),
        limit_bps=limit_bps,
        bands=bands[-MAX_BANDS:],
        band_name="transfer phase",
    )
    return _draw(drawn)


def _first_counter(own: Columns, counter_class: str) -> IntArray | None:
    """Return the rows of a device's first counter of a class, thinned: others count the same bytes again."""
    rows = np.flatnonzero(own["class"].astype(str) == counter_class)
    if not len(rows):
        return None
    rows = rows[own["counter"][rows] == own["counter"][rows[0]]]
    thinned: IntArray = rows[:: -(-len(rows) // MAX_POINTS)]
    return thinned


def _congestion(own: Columns, rate: str) -> dict[str, tuple[FloatArray, FloatArray]]:
    return {
        name: (own["time_s"][rows], own[rate][rows])
        for counter_class, name in CONGESTION.items()
        if (rows := _first_counter(own, counter_class)) is not None and own[rate][rows].any()
    }


def _draw(drawn: _Drawn) -> Figure:
    """Return the rates over time with the link's, and under them what was marked, paused or lost, on the same clock."""
    every = [*drawn.curves.values(), *drawn.congestion.values()]
    low, high = (end([float(end(times)) for times, _ in every] or [0.0]) for end in (min, max))
    foot = TOP + HEIGHT + (LANE_HEIGHT if drawn.congestion else 0)
    most_bps = max([drawn.limit_bps, 1.0, *(float(rates.max()) for _, rates in drawn.curves.values())])
    across = axes.duration_axis(low * PS_PER_S, max(high, low + 1e-3) * PS_PER_S, start=LEFT, end=svg.WIDTH - 8)
    up = axes.axis_of(Scale(name="rate", low=0, high=1.05 * most_bps, unit="bps"), start=TOP + HEIGHT, end=TOP)
    parts: list[Markup] = [svg.text(0, 14, drawn.title, class_="tier")]
    for begin, end, what in drawn.bands:
        left, right = across.at(max(begin, low) * PS_PER_S), across.at(min(end, high) * PS_PER_S)
        if right >= left:
            parts.append(svg.rectangle(left, TOP, max(1.0, right - left), foot - TOP, "shade", svg.hint(what)))
    parts += [
        axes.draw_bottom(across, foot, TOP, drawn.time_name),
        axes.draw_left(up, LEFT, svg.WIDTH - 8, "rate"),
        *_lines(drawn.curves, across, up, 0, 30),
    ]
    if drawn.limit_bps > 0:
        y = up.at(drawn.limit_bps)
        parts.append(svg.line(LEFT, y, svg.WIDTH - 8, y, "limit", svg.hint(f"link: {format_rate(drawn.limit_bps)}")))
    if drawn.congestion:
        most = max(float(rates.max()) for _, rates in drawn.congestion.values()) or 1.0
        lane = axes.PlotAxis(low=0, high=most, start=foot, end=foot - LANE_HEIGHT + LANE_GAP)
        parts.append(svg.line(LEFT, foot, svg.WIDTH - 8, foot, "baseline"))
        parts += _lines(drawn.congestion, across, lane, len(drawn.curves), lane.end - 10)
        parts.append(svg.text(LEFT - 8, lane.end + 4, format_number(most), class_="tick", anchor="end"))
    caption = f"{drawn.label}: {drawn.title}. {_band_sentence(drawn)}"
    table = _highest({**drawn.curves, **drawn.congestion}, set(drawn.curves))
    return Figure(drawing=svg.figure(foot + 40, caption, *parts), caption=caption, table=table)


def _lines(
    curves: dict[str, tuple[FloatArray, FloatArray]], across: axes.PlotAxis, up: axes.PlotAxis, first: int, y: float
) -> Iterator[Markup]:
    """Yield the curves, and their key at a height."""
    x = LEFT
    for place, (name, (times, values)) in enumerate(curves.items(), first):
        points = [
            (across.at(time * PS_PER_S), up.at(value))
            for time, value in zip(times.tolist(), values.tolist(), strict=True)
        ]
        yield svg.polyline(points, line_style(place))
        yield svg.line(x, y, x + 22, y, line_style(place))
        yield svg.text(x + 28, y + 4, name, class_="tick")
        x += 56 + svg.LETTER_WIDTH * len(name)


def _band_sentence(drawn: _Drawn) -> str:
    limit = f"Dotted, the link's rate: {format_rate(drawn.limit_bps)}. " if drawn.limit_bps > 0 else ""
    shaded = f" Shaded: {plural(len(drawn.bands), drawn.band_name)}." if drawn.bands else ""
    return f"{limit}Under the rates, packets a second that were marked, paused or lost, where there were any.{shaded}"


def _highest(curves: dict[str, tuple[FloatArray, FloatArray]], of_bits: set[str]) -> Table:
    rows = []
    for name, (times, values) in curves.items():
        place = int(values.argmax())
        value = float(values[place])
        shown = format_rate(value) if name in of_bits else f"{format_number(value)}/s"
        rows.append(
            (words(name), number(value, shown), number(times[place], duration(round(float(times[place]) * PS_PER_S))))
        )
    return Table(headings=("Rate", "Highest", "At"), rows=tuple(rows), is_sortable=False)
