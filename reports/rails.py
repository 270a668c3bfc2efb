"""Rails side by side: what the NICs of each sent, and how long the transfers that they sent took.

Shapes: C NICs, R rails, F flows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.metrics.transfers import completion_times_ps
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.units import format_bytes
from fabrictune.reports import axes, svg
from fabrictune.reports.axes import PlotAxis
from fabrictune.reports.blocks import Cell, Figure, Section, Table, left_out, missing, number, percent, words
from fabrictune.reports.charts import Scale
from fabrictune.reports.curves import MARK_RADIUS, mark_style
from fabrictune.reports.link_load import carried_load
from fabrictune.reports.load_scale import step_of
from fabrictune.reports.record_view import Run
from fabrictune.topology.fabric import NO_RAIL

FRACTIONS = (0.5, 0.99, 1.0)
NAMES = ("p50 FCT", "p99 FCT", "Max FCT")
MAX_RAILS = 32
LEFT, GAP, TOP, ROW_HEIGHT, BAR_HEIGHT = 84.0, 40.0, 36.0, 26.0, 12.0
PANEL = (svg.WIDTH - LEFT - GAP) / 2
LOAD_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
SLOW = 1.1  # times the median rail's p99: below that no rail is named as the slowest


@dataclass(frozen=True, kw_only=True)
class Rail:
    """The NICs of one rail as senders."""

    number: int
    num_nics: int
    mean_load: float  # of the links out of them; nan where the run did not count bytes
    highest_load: float
    num_transfers: int
    sent_bytes: int
    num_across: int  # transfers to another rail
    completions_ps: tuple[float, ...]  # at FRACTIONS; infinite where so many never finished, nan without transfers

    @property
    def name(self) -> str:
        """Its name."""
        return f"rail {self.number}"


def rails_section(runs: Sequence[Run]) -> Section | None:
    """Return the rails of each run on a fabric that has several, or None."""
    rails = [(run, own) for run in runs if len(own := rails_of(run)) > 1]
    if not rails:
        return None
    longest = [value for _, own in rails for rail in own for value in rail.completions_ps if np.isfinite(value)]
    highest_ps = max(longest, default=0.0) or 1.0
    blocks = tuple(draw_rails(run.label, own, highest_ps) for run, own in rails)
    lead = "Most jobs give all rails the same traffic: look for one that sends less or takes longer than the others."
    return Section(anchor="rails", title="Rails", lead=lead, blocks=blocks)


def rails_of(run: Run) -> list[Rail]:
    """Return the rails of a run's fabric in order; none where it has none, or no transfer moved bytes."""
    fabric, flows = run.fabric, run.flows
    if fabric is None or flows is None or not len(flows["source"]):
        return []
    rail_C = np.where(fabric.nic_port_C >= 0, fabric.port_rail_P[fabric.nic_port_C], NO_RAIL).astype(np.int16)
    rail_F, goal_F = rail_C[flows["source"]], rail_C[flows["destination"]]
    time_ps_F, bytes_F, load = completion_times_ps(flows), flows["bytes"], carried_load(run)
    is_sender_P = fabric.port_nic_P >= 0
    rails = []
    for rail in np.unique(rail_C[rail_C != NO_RAIL]).tolist():
        is_own_F = rail_F == rail
        load_L = np.full(1, np.nan) if load is None else load.load_P[is_sender_P & (fabric.port_rail_P == rail)]
        rails.append(
            Rail(
                number=rail,
                num_nics=int((rail_C == rail).sum()),
                mean_load=float(load_L.mean()),
                highest_load=float(load_L.max()),
                num_transfers=int(is_own_F.sum()),
                sent_bytes=int(bytes_F[is_own_F].sum()),
                num_across=int((goal_F[is_own_F] != rail).sum()),
                completions_ps=tuple(percentiles(time_ps_F[is_own_F], FRACTIONS).tolist()),
            )
        )
    return rails


def draw_rails(label: str, rails: Sequence[Rail], highest_ps: float) -> Figure:
    """Return a row a rail: the load of its NICs' links where it is known, and completion times of what they sent."""
    shown = rails[:MAX_RAILS]
    foot = TOP + ROW_HEIGHT * len(shown)
    has_loads = not np.isnan(shown[0].mean_load)
    loads = PlotAxis(low=0, high=1, start=LEFT, end=LEFT + PANEL)
    start = loads.end + GAP if has_loads else LEFT
    times = axes.axis_of(Scale(name="", low=0, high=1.02 * highest_ps, unit="ps"), start=start, end=svg.WIDTH - 12)
    ticks = times.ticks(5)
    parts = [axes.draw_top(times, TOP, foot, ticks, list(map(times.label, ticks)), f"completion time, {times.unit}")]
    if has_loads:
        names = list(map(percent, LOAD_TICKS))
        parts.append(axes.draw_top(loads, TOP, foot, LOAD_TICKS, names, "load of the NICs' links"))
    for row, rail in enumerate(shown):
        y = TOP + ROW_HEIGHT * (row + 0.5)
        parts.append(svg.text(0, y + 4, rail.name, class_="tier"))
        parts += [*_load(rail, loads, y), *_times(rail, times, y)]
    bars = " Bars: mean load of the links out of the rail's NICs, lines the highest." if has_loads else ""
    caption = f"{label}: {_verdict(rails)}{bars} Circles: p50, p99 and max FCT of what they sent."
    return Figure(drawing=svg.figure(foot + 4, caption, *parts), caption=caption, table=_numbers(rails))


def _load(rail: Rail, loads: PlotAxis, y: float) -> Iterator[Markup]:
    if np.isnan(rail.mean_load):
        return
    hint = svg.hint(f"{rail.name}: mean {percent(rail.mean_load)}, highest {percent(rail.highest_load)}")
    width = loads.at(min(rail.mean_load, 1)) - loads.start
    style = f"fill-{step_of(rail.mean_load)}"
    yield svg.rectangle(loads.start, y - BAR_HEIGHT / 2, width, BAR_HEIGHT, style, hint)
    yield svg.line(loads.start + width, y, loads.at(min(rail.highest_load, 1)), y, "baseline")


def _times(rail: Rail, times: PlotAxis, y: float) -> Iterator[Markup]:
    finite = [(name, value) for name, value in zip(NAMES, rail.completions_ps, strict=True) if np.isfinite(value)]
    if not finite:
        return
    shown = ", ".join(f"{name} {format_metric(value, 'ps')}" for name, value in finite)
    yield svg.tag(
        "g",
        svg.hint(f"{rail.name}: {shown}"),
        svg.line(times.at(finite[0][1]), y, times.at(finite[-1][1]), y, "baseline"),
        *(svg.tag("circle", cx=times.at(value), cy=y, r=MARK_RADIUS, class_=mark_style(0)) for _, value in finite),
    )


def _verdict(rails: Sequence[Rail]) -> str:
    """Return which rail is the slowest, if one is slower than the median rail by more than SLOW."""
    p99s_ps = [rail.completions_ps[1] for rail in rails if not np.isnan(rail.completions_ps[1])]
    slowest = max(rails, key=lambda rail: np.nan_to_num(rail.completions_ps[1], nan=-1.0))
    if np.isinf(slowest.completions_ps[1]):
        return f"{slowest.name} has transfers that never finished."
    ratio = slowest.completions_ps[1] / (median(p99s_ps) or 1.0)
    if ratio <= SLOW:
        return f"p99 of all {len(rails):,} rails within {percent(SLOW - 1)} of the median rail's."
    return f"{slowest.name} is the slowest, its p99 {format_metric(ratio, 'ratio')} times that of the median rail."


def _numbers(rails: Sequence[Rail]) -> Table:
    """Return a row a rail, without the columns that would be empty."""
    num_rails, rails = len(rails), rails[:MAX_RAILS]
    columns: dict[str, list[Cell]] = {
        "Rail": [words(rail.name) for rail in rails],
        "NICs": [number(rail.num_nics, f"{rail.num_nics:,}") for rail in rails],
        "Sent": [number(rail.sent_bytes, format_bytes(rail.sent_bytes)) for rail in rails],
    }
    if not np.isnan(rails[0].mean_load):
        columns["Mean load"] = [number(rail.mean_load, percent(rail.mean_load)) for rail in rails]
        columns["Highest"] = [number(rail.highest_load, percent(rail.highest_load)) for rail in rails]
    columns["Transfers"] = [number(rail.num_transfers, f"{rail.num_transfers:,}") for rail in rails]
    if any(rail.num_across for rail in rails):
        columns["To other rails"] = [number(rail.num_across, f"{rail.num_across:,}") for rail in rails]
    for place, name in enumerate(NAMES):
        columns[name] = [_completion(rail.completions_ps[place]) for rail in rails]
    return Table(
        headings=tuple(columns),
        rows=tuple(zip(*columns.values(), strict=True)),
        left_out=left_out(len(rails), num_rails, "rail", "fabric"),
    )


def _completion(value_ps: float) -> Cell:
    return missing() if np.isnan(value_ps) else number(value_ps, format_metric(value_ps, "ps"))
