"""Stragglers and decay of a job: a heat map of machines, what makes ranks wait, who comes last, and what grows."""

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports import svg
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    duration,
    left_out,
    missing,
    number,
    percent,
    words,
)
from fabrictune.reports.load_scale import key
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

LEFT, TOP, ROW, MOST_WIDE = 220.0, 60.0, 14.0, 110.0
MAX_MACHINES, MAX_ROWS, MAX_NAME = 64, 64, 30
EXCESS = (0.02, 0.05, 0.1, 0.2, 0.5)  # upper ends of steps 1 to 5; step 0 has nothing to compare with
EXCESS_NAMES = ("no peers", "to 2 %", "to 5 %", "to 10 %", "to 20 %", "to 50 %", "more")
HEAT = select("straggler_heat", "host", "place", "kind", "time_ns", "ratio")
FOUND = select("stragglers", "cause", "ranks", "hosts", "pattern", "excess_fraction", "steps_fraction", "gain_fraction")
ARRIVALS = select(
    *("straggler_arrivals", "axis", "group", "num_requests", "num_late", "last_rank", "last_share_fraction"),
    *("late_ns", "pattern"),
)
PARTS = select("decay_parts", "part", "first_ns", "last_ns", "growth_ns", "share_fraction", "ranks")
DIFFERENCES = select("decay_differences", "part", "own_ns", "other_ns", "change_ns", "share_fraction")


def stragglers_section(runs: Sequence[Run]) -> Section | None:
    """Return the heat map and the tables of each run, or None."""
    blocks: list[Block] = []
    for run in runs:
        if (heat := run.rows(HEAT)) is not None and len(heat["host"]):
            blocks.append(_draw(run.label, heat))
        if (found := run.rows(FOUND)) is not None and len(found["cause"]):
            blocks.append(_found(run.label, found))
        if (arrivals := run.rows(ARRIVALS)) is not None and len(arrivals["group"]):
            blocks.append(_arrivals(run.label, arrivals))
        if (parts := run.rows(PARTS)) is not None:
            blocks.append(_parts(run.label, parts))
        if (differences := run.rows(DIFFERENCES)) is not None:
            blocks.append(_differences(run.label, differences))
    if not blocks:
        return None
    lead = "Every rank waits for the slowest. Look for a row of high steps: a machine slow at one thing, or at all."
    return Section(anchor="stragglers", title="Stragglers and decay", lead=lead, blocks=tuple(blocks))


def _draw(label: str, heat: Columns) -> Figure:
    machines, kinds = _machines(heat), list(dict.fromkeys(heat["kind"].tolist()))
    wide = min(MOST_WIDE, (svg.WIDTH - LEFT - 8) / len(kinds))
    row_of = {machine: row for row, machine in enumerate(machines)}
    total = len(set(zip(heat["place"].tolist(), heat["host"].tolist(), strict=True)))
    caption = f"{label}: work and requests of each machine over its peers'; rows by place in the pipeline, then name."
    if total > len(machines):
        caption += f" Drawn: the {len(machines)} of {total} with the most excess."
    parts = [key(0, 14, "excess over peers", EXCESS_NAMES), *_names(machines, kinds, wide)]
    columns = (heat[name].tolist() for name in ("host", "place", "kind", "time_ns", "ratio"))
    for host, place, kind, time_ns, ratio in zip(*columns, strict=True):
        if (row := row_of.get((place, host))) is not None:
            step = 0 if ratio < 0 else 1 + int(np.searchsorted(EXCESS, max(ratio - 1, 0.0)))
            shown = "no peers" if ratio < 0 else percent(ratio - 1)
            hint = svg.hint(f"{host}, place {place}, {kind}: {duration(time_ns * PS_PER_NS)}, {shown}")
            x, y = LEFT + kinds.index(kind) * wide, TOP + row * ROW
            parts.append(svg.rectangle(x, y, wide - 1, ROW - 1, f"fill-{step}", hint))
    return Figure(drawing=svg.figure(TOP + ROW * len(machines) + 8, caption, *parts), caption=caption)


def _machines(heat: Columns) -> list[tuple[int, str]]:
    """Return places and machines in order; of more than MAX_MACHINES those with the most excess in anything."""
    worst: dict[tuple[int, str], float] = {}
    for place, host, ratio in zip(heat["place"].tolist(), heat["host"].tolist(), heat["ratio"].tolist(), strict=True):
        worst[place, host] = max(worst.get((place, host), 0.0), ratio)
    return sorted(sorted(worst, key=lambda machine: -worst[machine])[:MAX_MACHINES])


def _names(machines: Sequence[tuple[int, str]], kinds: Sequence[str], wide: float) -> Iterator[Markup]:
    for row, (place, host) in enumerate(machines):
        name = host if len(host) <= MAX_NAME else f"{host[: MAX_NAME - 1]}\u2026"
        yield svg.text(LEFT - 8, TOP + (row + 0.5) * ROW + 4, f"{place}: {name}", class_="tick", anchor="end")
    for column, kind in enumerate(kinds):
        yield svg.text(LEFT + (column + 0.5) * wide, TOP - 8, kind, class_="tick", anchor="middle")


def _found(label: str, found: Columns) -> Table:
    rows = tuple(
        (
            *(words(str(found[name][row])) for name in ("cause", "ranks", "hosts", "pattern")),
            *(_share(float(found[name][row])) for name in ("excess_fraction", "steps_fraction", "gain_fraction")),
        )
        for row in range(min(MAX_ROWS, len(found["cause"])))
    )
    return Table(
        caption=f"{label}: what makes ranks wait, the largest gain first",
        headings=("Cause", "Ranks", "Machines", "Pattern", "Excess", "Steps", "Gain if removed"),
        rows=rows,
        left_out=left_out(len(rows), len(found["cause"]), "cause", "stragglers"),
    )


def _arrivals(label: str, arrivals: Columns) -> Table:
    order = np.argsort(-arrivals["num_late"] * arrivals["late_ns"], kind="stable")[:MAX_ROWS].tolist()
    return Table(
        caption=f"{label}: who comes last to a group's requests",
        headings=("Axis", "Group", "Requests", "With someone late", "Rank", "Its share", "Late by", "Pattern"),
        rows=tuple(
            (
                words(str(arrivals["axis"][row])),
                *(
                    number(arrivals[name][row], f"{arrivals[name][row]:,}")
                    for name in ("group", "num_requests", "num_late")
                ),
                missing()
                if arrivals["last_rank"][row] < 0
                else number(arrivals["last_rank"][row], str(arrivals["last_rank"][row])),
                _share(float(arrivals["last_share_fraction"][row])),
                _time(int(arrivals["late_ns"][row])),
                words(str(arrivals["pattern"][row])),
            )
            for row in order
        ),
        left_out=left_out(len(order), len(arrivals["group"]), "group", "straggler_arrivals"),
    )


def _parts(label: str, parts: Columns) -> Table:
    return Table(
        caption=f"{label}: parts of the step over the run",
        headings=("Part", "First tenth", "Last tenth", "Growth", "Share of the step's growth", "Ranks"),
        rows=tuple(
            (
                words(str(parts["part"][row])),
                *(_time(int(parts[name][row])) for name in ("first_ns", "last_ns", "growth_ns")),
                _share(float(parts["share_fraction"][row])),
                words(str(parts["ranks"][row]) or "all"),
            )
            for row in range(len(parts["part"]))
        ),
    )


def _differences(label: str, differences: Columns) -> Table:
    return Table(
        caption=f"{label}: time to the loss, against another run",
        headings=("Part", "This run", "Other run", "Change", "Share"),
        rows=tuple(
            (
                words(str(differences["part"][row])),
                *(_time(int(differences[name][row])) for name in ("own_ns", "other_ns", "change_ns")),
                _share(float(differences["share_fraction"][row])),
            )
            for row in range(len(differences["part"]))
        ),
    )


def _share(fraction: float) -> Cell:
    return missing() if fraction == -1 else number(fraction, percent(fraction))


def _time(time_ns: int) -> Cell:
    return number(time_ns, duration(time_ns * PS_PER_NS) if time_ns >= 0 else f"-{duration(-time_ns * PS_PER_NS)}")
