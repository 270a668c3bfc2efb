"""NICs that were monitored: what they carried by the second and by the sample, congestion, flaps, phases, alerts.

Shapes: S rows of a counter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_S, format_bytes, format_number, format_rate
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.reports import axes, svg
from fabrictune.reports.blocks import (
    Cell,
    Figure,
    Section,
    Table,
    duration,
    left_out,
    missing,
    number,
    percent,
    plural,
    words,
)
from fabrictune.reports.charts import Scale
from fabrictune.reports.curves import line_style
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

LEFT, TOP, HEIGHT = 64.0, 62.0, 150.0
LANE_HEIGHT, LANE_GAP = 90.0, 34.0  # of the lane of congestion, and of the space above it
MAX_DEVICES, MAX_ROWS, MAX_POINTS = 8, 64, 600
DEVICES = select(
    *("nic_devices", "device", "rate_bps", "sent_bytes", "received_bytes", "peak_fraction", "ecn_marked", "cnps"),
    *("pauses", "out_of_sequence", "link_downs"),
)
SECONDS = select("nic_seconds", "time_s", "device", "counter", "class", "mean_rate", "peak_rate")
SAMPLES = select("nic_samples", "time_s", "device", "counter", "class", "rate")
PHASES = select(
    *("nic_phases", "device", "direction", "begin_s", "duration_s", "num_bytes", "rate_bps", "share_fraction"),
    *("ecn_marked", "cnps", "pauses", "out_of_sequence"),
)
ALERTS = select("nic_alerts", "time_s", "rule", "entity", "actual")
RATES = select(
    "transfer_rates", "axis", "operation", "num_bytes", "num_requests", "time_ns", "rate_bps", "share_fraction"
)
CARRIED = (CounterClass.BYTES_SENT.value, CounterClass.BYTES_RECEIVED.value)
CONGESTION = {
    CounterClass.ECN_MARKED.value: "ECN marks",
    CounterClass.CNP_SENT.value: "CNPs sent",
    CounterClass.CNP_HANDLED.value: "CNPs handled",
    CounterClass.PAUSE_RECEIVED.value: "pauses received",
    CounterClass.PAUSE_SENT.value: "pauses sent",
    CounterClass.SEQUENCE_ERROR.value: "out of sequence",
}
COUNTS = ("ecn_marked", "cnps", "pauses", "out_of_sequence")
COUNT_NAMES = ("ECN marks", "CNPs", "Pauses", "Out of sequence")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Drawn:
    """Rates of one device, and the times of which something is told."""

    title: str
    time_name: str
    curves: dict[str, tuple[FloatArray, FloatArray]]  # bits per second over seconds
    congestion: dict[str, tuple[FloatArray, FloatArray]]  # packets per second
    limit_bps: float  # -1 where it is not known
    bands: Sequence[tuple[float, float, str]]  # from, to, what
    band_name: str


def nics_section(runs: Sequence[Run]) -> Section | None:
    """Return figures and tables of each run's NICs, and its transfers against what a NIC carries, or None."""
    blocks: list[Figure | Table] = []
    for run in runs:
        blocks += _monitored(run)
        if (rates := run.rows(RATES)) is not None:
            blocks.append(_transfers(run.label, rates))
    if not blocks:
        return None
    lead = "A phase far below its link's rate waits for something: look for marks, pauses or a flap beside it."
    return Section(anchor="nics", title="NICs", lead=lead, blocks=tuple(blocks))


def _monitored(run: Run) -> Iterator[Figure | Table]:
    devices = run.rows(DEVICES)
    limits = {} if devices is None else dict(zip(devices["device"].tolist(), devices["rate_bps"].tolist(), strict=True))
    seconds, samples, phases = run.rows(SECONDS), run.rows(SAMPLES), run.rows(PHASES)
    if devices is not None:
        yield _devices(run.label, devices)
    names = _most_carried(seconds)
    for device in names[:MAX_DEVICES]:
        limit_bps = float(limits.get(device, -1))
        if seconds is not None:
            yield _draw(_by_second(run.label, device, seconds, limit_bps))
        if samples is not None and (samples["device"] == device).any():
            yield _draw(_by_sample(run.label, device, samples, phases, limit_bps))
    if phases is not None:
        yield _phases(run.label, phases)
    if (alerts := run.rows(ALERTS)) is not None:
        yield _alerts(run.label, alerts)


def _most_carried(seconds: Columns | None) -> list[str]:
    """Return the devices, those that carried most first."""
    if seconds is None:
        return []
    is_carried = np.isin(seconds["class"].astype(str), CARRIED)
    total = dict.fromkeys(seconds["device"].tolist(), 0.0)
    for device, rate in zip(seconds["device"][is_carried].tolist(), seconds["mean_rate"][is_carried], strict=True):
        total[device] += float(rate)
    return sorted(total, key=lambda device: -total[device])


def _by_second(label: str, device: str, seconds: Columns, limit_bps: float) -> _Drawn:
    own = {name: column[seconds["device"] == device] for name, column in seconds.items()}
    curves = {}
    for counter_class in CARRIED:
        if (rows := _first_counter(own, counter_class)) is not None:
            name = counter_class.removeprefix("bytes ")
            curves[f"{name}, mean"] = own["time_s"][rows], 8 * own["mean_rate"][rows]
            curves[f"{name}, peak between samples"] = own["time_s"][rows], 8 * own["peak_rate"][rows]
    is_down = (own["class"].astype(str) == CounterClass.LINK_DOWN.value) & (own["mean_rate"] > 0)
    return _Drawn(
        title=f"{label}: {device} by the second",
        time_name="time since the start",
        curves=curves,
        congestion=_congestion(own, "mean_rate"),
        limit_bps=limit_bps,
        bands=[(time_s - 1, time_s, "link down") for time_s in own["time_s"][is_down].tolist()],
        band_name="flap",
    )


def _by_sample(label: str, device: str, samples: Columns, phases: Columns | None, limit_bps: float) -> _Drawn:
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
    return _Drawn(
        title=f"{label}: {device}, the newest samples",
        time_name="time since the start",
        curves=curves,
        congestion=_congestion(own, "rate"),
        limit_bps=limit_bps,
        bands=bands[-MAX_ROWS:],
        band_name="transfer phase",
    )


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
    caption = f"{drawn.title}. {_band_sentence(drawn)}"
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
        rows.append((words(name), number(value, shown), number(times[place], _time(float(times[place])))))
    return Table(headings=("Rate", "Highest", "At"), rows=tuple(rows), is_sortable=False)


def _devices(label: str, devices: Columns) -> Table:
    rows = tuple(
        (
            words(str(devices["device"][row])),
            _known(float(devices["rate_bps"][row]), format_rate),
            *(
                number(devices[name][row], format_bytes(int(devices[name][row])))
                for name in ("sent_bytes", "received_bytes")
            ),
            _known(float(devices["peak_fraction"][row]), percent),
            *_counts(devices, row, (*COUNTS, "link_downs")),
        )
        for row in range(min(MAX_ROWS, len(devices["device"])))
    )
    return Table(
        caption=f"{label}: NICs since the start",
        headings=("Device", "Link", "Sent", "Received", "Highest share of the link", *COUNT_NAMES, "Link downs"),
        rows=rows,
        left_out=left_out(len(rows), len(devices["device"]), "device", "nic_devices"),
    )


def _phases(label: str, phases: Columns) -> Table:
    """Return the phases, those of the lowest share of their link first."""
    order = np.argsort(phases["share_fraction"], kind="stable")[:MAX_ROWS].tolist()
    return Table(
        caption=f"{label}: transfer phases against their link's rate, the lowest share first",
        headings=("Device", "Direction", "From", "For", "Bytes", "Rate", "Share of the link", *COUNT_NAMES),
        rows=tuple(
            (
                words(str(phases["device"][row])),
                words(str(phases["direction"][row])),
                number(phases["begin_s"][row], _time(float(phases["begin_s"][row]))),
                number(phases["duration_s"][row], _time(float(phases["duration_s"][row]))),
                number(phases["num_bytes"][row], format_bytes(int(phases["num_bytes"][row]))),
                number(phases["rate_bps"][row], format_rate(float(phases["rate_bps"][row]))),
                number(phases["share_fraction"][row], percent(float(phases["share_fraction"][row]))),
                *_counts(phases, row, COUNTS),
            )
            for row in order
        ),
        left_out=left_out(len(order), len(phases["device"]), "phase", "nic_phases"),
    )


def _alerts(label: str, alerts: Columns) -> Table:
    count = len(alerts["rule"])
    return Table(
        caption=f"{label}: alerts, each with its time",
        headings=("After", "Device", "What was found", "Rule"),
        rows=tuple(
            (
                number(alerts["time_s"][row], _time(float(alerts["time_s"][row]))),
                *(words(str(alerts[name][row])) for name in ("entity", "actual", "rule")),
            )
            for row in range(min(MAX_ROWS, count))
        ),
        left_out=left_out(min(MAX_ROWS, count), count, "alert", "nic_alerts"),
    )


def _transfers(label: str, rates: Columns) -> Table:
    count = len(rates["axis"])
    return Table(
        caption=f"{label}: a job's transfers between hosts against what a NIC carries, medians",
        headings=("Axis", "Operation", "Size", "Requests", "Time", "Bus bandwidth", "Share of the NIC"),
        rows=tuple(
            (
                words(str(rates["axis"][row])),
                words(str(rates["operation"][row])),
                number(rates["num_bytes"][row], format_bytes(int(rates["num_bytes"][row]))),
                number(rates["num_requests"][row], f"{rates['num_requests'][row]:,}"),
                number(rates["time_ns"][row], _time(float(rates["time_ns"][row]) / 1e9)),
                number(rates["rate_bps"][row], format_rate(float(rates["rate_bps"][row]))),
                _known(float(rates["share_fraction"][row]), percent),
            )
            for row in range(min(MAX_ROWS, count))
        ),
        left_out=left_out(min(MAX_ROWS, count), count, "sort of request", "transfer_rates"),
    )


def _counts(table: Columns, row: int, names: Iterable[str]) -> Iterator[Cell]:
    for name in names:
        value = int(table[name][row])
        yield number(value, f"{value:,}", tone="bad" if value and name in ("out_of_sequence", "link_downs") else "")


def _known(value: float, show: Callable[[float], str]) -> Cell:
    return missing() if value < 0 else number(value, show(value))


def _time(seconds: float) -> str:
    return duration(round(seconds * PS_PER_S))
