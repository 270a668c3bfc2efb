"""Gantt chart of a training's last traced step: each rank's work and the waits between it, by axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.layout import AXES
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports import svg
from fabrictune.reports.axes import draw_bottom, draw_over_time, duration_axis
from fabrictune.reports.blocks import Figure, Section, Table, duration, number, percent, shown_of
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

STRETCHES = select("rank_stretches", "step", "rank", "axis", "tag", "start_ns", "duration_ns")
WORK = "work"
MAX_RANKS = 32
MAX_BARS = 6_000
CLOCK = "time since the first rank began"
LEFT, TOP, ROW_HEIGHT, BAR_HEIGHT, MIN_WIDTH = 80.0, 30.0, 20.0, 15.0, 0.4


def gantt_section(runs: Sequence[Run]) -> Section | None:
    """Return a chart of each run that has the stretches of a step, or None."""
    figures = tuple(draw_step(run.label, table) for run in runs if (table := run.rows(STRETCHES)) is not None)
    if not figures:
        return None
    lead = "A rank's work, and its waits for communication: for what other ranks still do, or for the network."
    return Section(anchor="gantt", title="A step, rank by rank", lead=lead, blocks=figures)


def draw_step(label: str, table: Columns) -> Figure:
    """Return the bars of the first ranks, and what each waits for as numbers."""
    ranks = np.unique(table["rank"])
    shown = ranks[:MAX_RANKS]
    rows = np.flatnonzero(np.isin(table["rank"], shown))
    longest = rows[np.argsort(-table["duration_ns"][rows], kind="stable")][:MAX_BARS]
    begin_ns = int(table["start_ns"][rows].min())
    end_ns = int((table["start_ns"] + table["duration_ns"])[rows].max())
    present = set(table["axis"].tolist()) - {WORK}
    axes = [*(axis for axis in AXES if axis in present), *sorted(present.difference(AXES))]
    class_of = {WORK: "fill-1", **{axis: f"stack-{place % 6}" for place, axis in enumerate(axes)}}
    legend, top = _legend(class_of)
    height = top + ROW_HEIGHT * len(shown)
    across = duration_axis(0, float(end_ns - begin_ns) * PS_PER_NS, start=LEFT, end=svg.WIDTH - 8)
    parts = [draw_bottom(across, height, top, CLOCK), *legend]
    for place, rank in enumerate(shown.tolist()):
        parts.append(svg.text(0, top + ROW_HEIGHT * place + 12, f"rank {rank}", class_="tick"))
    bars: list[Markup] = []
    for row in np.sort(longest).tolist():
        left, right = (
            across.at(float(at_ns - begin_ns) * PS_PER_NS)
            for at_ns in (table["start_ns"][row], table["start_ns"][row] + table["duration_ns"][row])
        )
        y = top + ROW_HEIGHT * int(np.searchsorted(shown, table["rank"][row])) + 1
        what = f"{table['axis'][row]} {table['tag'][row]}".strip()
        named = svg.hint(f"{what}, {duration(float(table['duration_ns'][row]) * PS_PER_NS)}")
        bar_class = class_of[str(table["axis"][row])]
        bars.append(svg.rectangle(left, y, max(right - left, MIN_WIDTH), BAR_HEIGHT, bar_class, named))
    parts.append(draw_over_time(across, top, height, CLOCK, *bars))
    caption = f"{label}: step {table['step'][0]}, {shown_of(len(shown), len(ranks), 'rank')}."
    if len(longest) < len(rows):
        caption += f" Of {len(rows):,} stretches the {len(longest):,} longest are drawn."
    return Figure(
        drawing=svg.figure(height + 40, caption, *parts), caption=caption, table=_numbers(table, shown.tolist(), axes)
    )


def _legend(class_of: Mapping[str, str]) -> tuple[list[Markup], float]:
    """Return a swatch with its name for work and for each axis, in rows, and where the plot begins below them."""
    parts: list[Markup] = []
    x, y = LEFT, 4.0
    for name, class_ in class_of.items():
        shown = name if name == WORK else f"waits for {name}"
        width = 40 + svg.LETTER_WIDTH * len(shown)
        if x > LEFT and x + width > svg.WIDTH:
            x, y = LEFT, y + ROW_HEIGHT
        parts += [svg.rectangle(x, y, 12, 12, class_), svg.text(x + 17, y + 10, shown, class_="tick")]
        x += width
    return parts, TOP + y - 4


def _numbers(table: Columns, ranks: Sequence[int], axes: Sequence[str]) -> Table:
    """Return the time of each rank by what it did, and the share of its waits."""
    rows = []
    for rank in ranks:
        is_own = table["rank"] == rank
        by_axis = [int(table["duration_ns"][is_own & (table["axis"] == axis)].sum()) for axis in (WORK, *axes)]
        share = sum(by_axis[1:]) / max(sum(by_axis), 1)
        times = (number(time_ns, duration(float(time_ns) * PS_PER_NS)) for time_ns in by_axis)
        rows.append((number(rank, str(rank)), *times, number(share, percent(share))))
    headings = ("Rank", "Work", *(f"Waits for {axis}" for axis in axes), "Waiting")
    return Table(headings=headings, rows=tuple(rows))
