"""Per-link load: how evenly the links of each class share the traffic, and which links carry most."""

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import max_to_mean_ratio
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_rate
from fabrictune.reports import svg
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    left_out,
    missing,
    number,
    percent,
    plural,
    words,
)
from fabrictune.reports.link_load import LinkLoad, carried_load, distinct_loads, offered_load
from fabrictune.reports.load_scale import step_of
from fabrictune.reports.record_view import LOADS, PORTS, Run

MAX_BARS = 128  # a class of more links is shown by the highest of each run of neighbours in rank
MAX_ROWS = 8
MAX_COLUMNS = 3  # runs beside one another
LEFT, GAP, ROW_HEIGHT, PLOT_HEIGHT = 150.0, 28.0, 84.0, 52.0


def loads_section(runs: Sequence[Run]) -> Section | None:
    """Return the load profile of each measure and the busiest links of each run, or None."""
    blocks: list[Block] = []
    for measure in (offered_load, carried_load):
        loads = [(run, load) for run in runs if (load := measure(run)) is not None]
        if loads:
            is_second = bool(blocks)
            blocks.append(draw_profiles(distinct_loads([load for _, load in loads])))
            blocks += [busiest_links(run, load, is_folded=is_second) for run, load in loads]
    if not blocks:
        return None
    lead = (
        "Bars are link directions, busiest first. Flat is balanced; a steep left edge means that few links carry most, "
        "by hash collisions or by an incast."
    )
    return Section(anchor="loads", title="Link load", lead=lead, blocks=tuple(blocks))


def draw_profiles(loads: Sequence[LinkLoad]) -> Figure:
    """Return sorted bars for every link class (rows) and run (columns, then further rows), all on one scale."""
    measure = loads[0].measure
    classes = list(dict.fromkeys(name for load in loads for name in load.fabric.link_classes()))
    top = max(1.0, *(float(load.load_P.max()) for load in loads))
    num_columns = min(len(loads), MAX_COLUMNS)
    width = (svg.WIDTH - LEFT - GAP * (num_columns - 1)) / num_columns
    block_height = 40 + ROW_HEIGHT * len(classes)
    parts: list[Markup] = []
    rows: list[tuple[Cell, ...]] = []
    for place, load in enumerate(loads):
        left, block_top = LEFT + place % num_columns * (width + GAP), place // num_columns * block_height
        parts.append(svg.text(left, block_top + 14, load.label, class_="tier"))
        for name, ports in load.fabric.link_classes().items():
            y = block_top + 40 + ROW_HEIGHT * classes.index(name)
            load_L = np.sort(load.load_P[ports])[::-1]
            parts.append(_draw_profile(load_L, left, y, width, top))
            rows.append(_profile_row(load.label, name, load_L))
    height = block_height * -(-len(loads) // num_columns)
    for block_top in np.arange(0, height, block_height).tolist():
        for row, name in enumerate(classes):
            parts.append(svg.text(0, block_top + 40 + ROW_HEIGHT * row + 14, name, class_="tier"))
    caption = f"Links by {measure}, busiest first, all on one scale; the line marks 100 %, the dash the mean."
    table = Table(headings=("Run", "Links", "Count", "Idle", "Mean", "Highest", "MMR"), rows=tuple(rows))
    return Figure(drawing=svg.figure(height, caption, *parts), caption=caption, table=table)


def _draw_profile(load_L: FloatArray, left: float, y: float, width: float, top: float) -> Markup:
    bars_B = _highest_of_each(load_L, MAX_BARS)
    foot, pitch = y + PLOT_HEIGHT, min(width / len(bars_B), 24.0)
    parts = list(_bars(bars_B, left, foot, pitch, PLOT_HEIGHT / top))
    mean = float(load_L.mean())
    parts.append(svg.line(left, foot, left + width, foot, "baseline"))
    parts.append(svg.line(left, foot - PLOT_HEIGHT / top, left + width, foot - PLOT_HEIGHT / top, "limit"))
    if mean > 0:
        parts.append(
            svg.line(left, foot - PLOT_HEIGHT * mean / top, left + width, foot - PLOT_HEIGHT * mean / top, "mean")
        )
    summary = f"{plural(len(load_L), 'link')}, highest {percent(load_L[0])}, mean {percent(mean)}"
    if len(load_L) > len(bars_B):
        summary += f"; {len(bars_B)} bars, each the highest of its links"
    parts.append(svg.text(left, foot + 15, summary, class_="tick"))
    return Markup("").join(parts)


def _bars(bars_B: FloatArray, left: float, foot: float, pitch: float, scale: float) -> Iterator[Markup]:
    """Yield the bars of loads above 0, those of one step as one path."""
    step_B = step_of(bars_B)
    tall_B = np.maximum(scale * bars_B, 1.0)
    for step in np.unique(step_B[step_B > 0]).tolist():
        places = np.flatnonzero(step_B == step).tolist()
        bars = (
            f"M{left + place * pitch:.1f} {foot:.1f}v{-tall_B[place]:.1f}h{0.86 * pitch:.1f}V{foot:.1f}z"
            for place in places
        )
        yield svg.tag("path", d="".join(bars), class_=f"fill-{step}")


def _highest_of_each(sorted_L: FloatArray, limit: int) -> FloatArray:
    if len(sorted_L) <= limit:
        return sorted_L
    return sorted_L[np.linspace(0, len(sorted_L), limit, endpoint=False).astype(np.int64)]


def _profile_row(label: str, name: str, load_L: FloatArray) -> tuple[Cell, ...]:
    mean = float(load_L.mean())
    return (
        words(label),
        words(name),
        number(len(load_L), f"{len(load_L):,}"),
        number((load_L == 0).sum(), f"{(load_L == 0).sum():,}"),
        number(mean, percent(mean)),
        number(load_L[0], percent(float(load_L[0]))),
        number(ratio := max_to_mean_ratio(load_L), f"{ratio:.2f}") if mean > 0 else missing(),
    )


def busiest_links(run: Run, load: LinkLoad, *, is_folded: bool) -> Table:
    """Return the links with the highest load."""
    ranked = load.busiest_ports()
    shown = ranked[:MAX_ROWS].tolist()
    caption = f"{load.label}: {'busiest links' if shown else 'no loaded link'} by {load.measure}"
    rest = left_out(len(shown), len(ranked), "link", "loads" if load.measure == "offered load" else "ports")
    loads, ports = run.table(LOADS), run.table(PORTS)
    if load.measure == "offered load" and loads is not None:
        headings: tuple[str, ...] = ("Link", "Flows", "Demand", "Rate", "Load")
        rows = [_offered_row(load, port, loads) for port in shown]
    else:
        assert ports is not None, "utilisation comes from the table ports"
        headings = ("Link", "Sent", "Rate", "Load")
        rows = [_carried_row(load, port, ports) for port in shown]
    return Table(caption=caption, headings=headings, rows=tuple(rows), left_out=rest, is_folded=is_folded)


def _offered_row(load: LinkLoad, port: int, loads_P: Columns) -> tuple[Cell, ...]:
    flows, demand_bps = int(loads_P["flows"][port]), float(loads_P["demand_bps"][port])
    return (
        words(load.fabric.link_label(port)),
        number(flows, f"{flows:,}"),
        number(demand_bps, format_rate(demand_bps)),
        *_rate_and_load(load, port),
    )


def _carried_row(load: LinkLoad, port: int, ports_P: Columns) -> tuple[Cell, ...]:
    sent_bytes = int(ports_P["tx_bytes"][port])
    return (
        words(load.fabric.link_label(port)),
        number(sent_bytes, format_bytes(sent_bytes)),
        *_rate_and_load(load, port),
    )


def _rate_and_load(load: LinkLoad, port: int) -> tuple[Cell, Cell]:
    rate_bps, share = int(load.fabric.port_rate_bps_P[port]), float(load.load_P[port])
    return number(rate_bps, format_rate(rate_bps)), number(share, percent(share), tone="bad" if share > 1 else "")
