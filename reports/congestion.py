"""Congestion over time: depth of the queues, number of paused ports, and the ports that suffered most.

Samples are thinned to a few hundred instants; each keeps the worst of its span, so that a short burst is never lost.

Shapes: P ports, S samples, B instants drawn, K ports drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes
from fabrictune.reports import axes, svg
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    duration,
    left_out,
    number,
    percent,
    plural,
    words,
)
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import TIME, line_style
from fabrictune.reports.fault_spans import bands_of, fault_spans
from fabrictune.reports.record_view import PORTS, SAMPLES, Run

MAX_INSTANTS = 320
MAX_LINES = 3
MAX_ROWS = 10
LEFT, TOP, HEIGHT = 64.0, 44.0, 170.0
LANE_HEIGHT, LANE_GAP = 76.0, 34.0  # of the lane of pauses, and of the space above it


@dataclass(frozen=True, kw_only=True, eq=False)
class CongestionTimeline:
    """One run's samples, thinned."""

    label: str
    time_ps_B: FloatArray
    deepest_bytes_B: IntArray  # over all sampled ports
    paused_ports_B: IntArray
    port_K: tuple[int, ...]  # the ports with the deepest queues
    queue_bytes_KB: IntArray
    peak_bytes_K: tuple[int, ...]  # of all samples, as are the two below
    peak_time_ps_K: tuple[int, ...]
    median_bytes_K: tuple[float, ...]
    num_sampled_ports: int


@dataclass(frozen=True, kw_only=True)
class SharedScale:
    """Upper ends of the axes that all runs of a page share."""

    time_ps: float
    queue_bytes: float
    paused_ports: int

    @classmethod
    def of(cls, timelines: Sequence[CongestionTimeline]) -> Self:
        """Return a scale that holds them all."""
        return cls(
            time_ps=max(float(timeline.time_ps_B.max()) for timeline in timelines) or 1.0,
            queue_bytes=max(int(timeline.deepest_bytes_B.max()) for timeline in timelines) or 1.0,
            paused_ports=max(int(timeline.paused_ports_B.max()) for timeline in timelines),
        )


def congestion_section(runs: Sequence[Run]) -> Section | None:
    """Return queue and pause timelines and the most paused ports, or None."""
    timelines = [(run, thin(run.label, samples)) for run in runs if (samples := run.rows(SAMPLES)) is not None]
    scale = SharedScale.of([timeline for _, timeline in timelines]) if timelines else None
    blocks: list[Block] = [draw_timeline(run, line, scale) for run, line in timelines if scale]
    blocks += [table for run in runs if (table := worst_ports(run)) is not None]
    if not blocks:
        return None
    lead = "A queue that stays deep marks an oversubscribed port; a PFC pause also stops victim flows behind it."
    return Section(anchor="congestion", title="Queues and pauses", lead=lead, blocks=tuple(blocks))


def thin(label: str, samples: Columns) -> CongestionTimeline:
    """Return the samples gathered into at most MAX_INSTANTS spans, the worst of each kept."""
    times_ps, instant_S = np.unique(samples["time_ps"], return_inverse=True)
    num_spans = min(len(times_ps), MAX_INSTANTS)
    span_S = instant_S * num_spans // len(times_ps)
    span_of_time = np.arange(len(times_ps)) * num_spans // len(times_ps)
    first_time = np.searchsorted(span_of_time, np.arange(num_spans))
    deepest_B, paused_B = np.zeros(num_spans, np.int64), np.zeros(num_spans, np.int64)
    np.maximum.at(deepest_B, span_S, samples["queue_bytes"])
    paused_at_time = np.bincount(instant_S, weights=samples["paused"] != 0, minlength=len(times_ps)).astype(np.int64)
    np.maximum.at(paused_B, span_of_time, paused_at_time)
    port_K = _deepest_ports(samples)
    queue_KB, own_K = np.zeros((len(port_K), num_spans), np.int64), []
    for line, port in enumerate(port_K):
        is_of_port_S = samples["port"] == port
        own_K.append((samples["queue_bytes"][is_of_port_S], samples["time_ps"][is_of_port_S]))
        np.maximum.at(queue_KB[line], span_S[is_of_port_S], own_K[-1][0])
    return CongestionTimeline(
        label=label,
        time_ps_B=times_ps[first_time].astype(np.float64),
        deepest_bytes_B=deepest_B,
        paused_ports_B=paused_B,
        port_K=port_K,
        queue_bytes_KB=queue_KB,
        peak_bytes_K=tuple(int(queue.max()) for queue, _ in own_K),
        peak_time_ps_K=tuple(int(times_ps[queue == queue.max()].min()) for queue, times_ps in own_K),
        median_bytes_K=tuple(percentile(queue, 0.5) for queue, _ in own_K),
        num_sampled_ports=len(np.unique(samples["port"])),
    )


def _deepest_ports(samples: Columns) -> tuple[int, ...]:
    """Return the ports with the deepest queues, deepest first, at most MAX_LINES and none that never queued."""
    ports, port_S = np.unique(samples["port"], return_inverse=True)
    deepest_of_port = np.zeros(len(ports), np.int64)
    np.maximum.at(deepest_of_port, port_S, samples["queue_bytes"])
    order = np.argsort(-deepest_of_port, kind="stable")[:MAX_LINES]
    return tuple(ports[order[deepest_of_port[order] > 0]].tolist())


def draw_timeline(run: Run, timeline: CongestionTimeline, scale: SharedScale) -> Figure:
    """Return queue depth over time, and the number of paused ports beneath it on the same clock."""
    across = axes.duration_axis(0, scale.time_ps, start=LEFT, end=svg.WIDTH - 8)
    up = axes.bytes_axis(1.05 * scale.queue_bytes, start=TOP + HEIGHT, end=TOP)
    foot = TOP + HEIGHT + (LANE_HEIGHT if scale.paused_ports else 0)
    parts: list[Markup] = [
        axes.draw_bottom(across, foot, TOP, "time"),
        axes.draw_left(up, LEFT, svg.WIDTH - 8, "queue"),
    ]
    drawn = [
        axes.draw_bands(bands_of(fault_spans(run)), across, TOP, foot),
        _shade(timeline.time_ps_B, timeline.deepest_bytes_B, across, up, "shade"),
    ]
    for line, (port, queue_B) in enumerate(zip(timeline.port_K, timeline.queue_bytes_KB, strict=True)):
        points = [(across.at(time), up.at(queue)) for time, queue in zip(timeline.time_ps_B, queue_B, strict=True)]
        drawn.append(svg.polyline(points, line_style(line), svg.hint(run.port_label(port))))
    parts.append(_key(run, timeline))
    if scale.paused_ports:
        lane = axes.PlotAxis(low=0, high=scale.paused_ports, start=foot, end=foot - LANE_HEIGHT + LANE_GAP)
        drawn.append(_shade(timeline.time_ps_B, timeline.paused_ports_B, across, lane, "pauses"))
        parts.append(_name_pauses(lane, scale))
    parts.append(axes.draw_over_time(across, TOP, foot, TIME, *drawn))
    caption = (
        f"{timeline.label}: queue depth over time at {plural(timeline.num_sampled_ports, 'sampled port')}; shaded, the "
        f"deepest port. {_pause_sentence(run, timeline)}"
    )
    drawing = svg.figure(foot + 40, caption, *parts)
    return Figure(drawing=drawing, caption=caption, table=_drawn_queues(run, timeline) if timeline.port_K else None)


def queue_chart(run: Run, timeline: CongestionTimeline) -> LineChart:
    """Return the depth over time of the deepest queues."""
    times_ps = timeline.time_ps_B.tolist()
    return LineChart(
        across=Scale(name="time", low=0, high=times_ps[-1] or 1.0, unit="ps"),
        up=Scale(name="queue", low=0, high=1.05 * (int(timeline.deepest_bytes_B.max()) or 1), unit="bytes"),
        curves={
            run.port_label(port): list(zip(times_ps, queue_B.tolist(), strict=True))
            for port, queue_B in zip(timeline.port_K, timeline.queue_bytes_KB, strict=True)
        },
        caption=f"{timeline.label}: queue depth over time",
    )


def _drawn_queues(run: Run, timeline: CongestionTimeline) -> Table:
    """Return the numbers behind the drawn lines, of all samples: how deep, when, and how deep half of the time."""
    peaks = zip(timeline.port_K, timeline.peak_bytes_K, timeline.peak_time_ps_K, timeline.median_bytes_K, strict=True)
    rows = [
        (
            words(run.port_label(port)),
            number(peak, format_bytes(peak)),
            number(when_ps, duration(when_ps)),
            number(median, format_bytes(median)),
        )
        for port, peak, when_ps, median in peaks
    ]
    return Table(headings=("Port", "Peak queue depth", "At", "Median"), rows=tuple(rows))


def _name_pauses(lane: axes.PlotAxis, scale: SharedScale) -> Markup:
    """Return the foot and the name of the lane of paused ports, under the queues."""
    name = svg.text(LEFT, lane.end - 6, f"sampled ports paused, 0 to {scale.paused_ports:,}", class_="axis")
    return svg.line(LEFT, lane.start, svg.WIDTH - 8, lane.start, "baseline") + name


def _pause_sentence(run: Run, timeline: CongestionTimeline) -> str:
    """Return how many ports samples found paused, and how many were paused at any time."""
    most = int(timeline.paused_ports_B.max())
    sampled = f"At most {most:,} of them paused at a sample." if most else "None of them was paused at a sample."
    ports = run.table(PORTS)
    if ports is None:
        return sampled
    num_paused = int((ports["paused_ps"] > 0).sum())
    return f"{sampled} Paused at any time: {num_paused:,} of all {plural(len(ports['port']), 'port')}."


def _shade(time_ps_B: FloatArray, value_B: IntArray, across: axes.PlotAxis, up: axes.PlotAxis, class_: str) -> Markup:
    top = [(across.at(time), up.at(value)) for time, value in zip(time_ps_B.tolist(), value_B.tolist(), strict=True)]
    return svg.area([(top[0][0], up.at(0)), *top, (top[-1][0], up.at(0))], class_)


def _key(run: Run, timeline: CongestionTimeline) -> Markup:
    parts: list[Markup] = []
    x = LEFT
    for line, port in enumerate(timeline.port_K):
        name = run.port_label(port)
        parts.append(svg.line(x, 12, x + 22, 12, line_style(line)))
        parts.append(svg.text(x + 28, 16, name, class_="tick"))
        x += 56 + 6.4 * len(name)
    return Markup("").join(parts)


def worst_ports(run: Run) -> Table | None:
    """Return the ports that were paused longest, then those with the deepest queues; None without counts."""
    ports = run.table(PORTS)
    if ports is None or run.fabric is None:
        return None
    paused_P, queue_P = ports["paused_ps"], ports["max_queue_bytes"]
    concerned = np.nonzero((paused_P > 0) | (queue_P > 0))[0]
    ranked = concerned[np.lexsort((-queue_P[concerned], -paused_P[concerned]))]
    if not len(ranked):
        return None
    shown = ranked[:MAX_ROWS].tolist()
    return Table(
        caption=f"{run.label}: ports by pause time, then by peak queue depth",
        headings=("Port", "Pauses", "Time paused", "Share of job", "Peak queue depth", "ECN marks", "Drops"),
        rows=tuple(_port_row(run, ports, port) for port in shown),
        left_out=left_out(len(shown), len(ranked), "port", "ports"),
    )


def _port_row(run: Run, ports_P: Columns, port: int) -> tuple[Cell, ...]:
    assert run.fabric is not None, "ports are named by the fabric"
    row = {name: int(column[port]) for name, column in ports_P.items()}
    share = row["paused_ps"] / run.span_ps if run.span_ps else 0.0
    return (
        words(run.fabric.link_label(port)),
        number(row["pauses"], f"{row['pauses']:,}"),
        number(row["paused_ps"], duration(row["paused_ps"])),
        number(share, percent(share)),
        number(
            row["max_queue_bytes"], "not known" if row["max_queue_bytes"] < 0 else format_bytes(row["max_queue_bytes"])
        ),
        number(row["ecn_marked_packets"], f"{row['ecn_marked_packets']:,}"),
        number(row["dropped_packets"], f"{row['dropped_packets']:,}", tone="bad" if row["dropped_packets"] else ""),
    )
