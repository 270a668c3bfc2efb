"""Replayed communication traces: step time beside its lower bound, exposed communication, and the critical path."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.arrays import BoolArray
from fabrictune.foundation.records import Columns
from fabrictune.reports.blocks import Cell, Section, Table, duration, left_out, missing, number, percent, words
from fabrictune.reports.record_view import EXPOSED, REPLAYED_STEPS, Run
from fabrictune.reports.selection import select

MAX_ROWS = 20
PATH = select("critical_path", "duration_ps", "axis", "rank", "part")
LINKS = select("critical_links", "port", "duration_ps", "transfers", "part")
RANKS = select("replayed_ranks", "step", "rank", "duration_ps", "work_ps", "exposed_ps", "part")
WORK = "work"  # in place of an axis


def replay_section(runs: Sequence[Run]) -> Section | None:
    """Return the steps of each replayed trace, what their critical path consists of, and their ranks, or None."""
    blocks: list[Table] = []
    for run in runs:
        steps, exposed = run.rows(REPLAYED_STEPS), run.rows(EXPOSED)
        if steps is None or exposed is None:
            continue
        for part in _parts(steps):
            blocks.append(steps_table(_title(run, part), _own(steps, part), _own(exposed, part)))
            blocks += _path_tables(run, part)
            if (ranks := run.rows(RANKS)) is not None:
                blocks.append(ranks_table(_title(run, part), _own(ranks, part)))
    if not blocks:
        return None
    lead = (
        "Exposed: communication that a rank waits for while it does no work. The lower bound has the same transfers, "
        "none of which share a link."
    )
    return Section(anchor="replay", title="Replayed steps", lead=lead, blocks=tuple(blocks))


def steps_table(title: str, steps: Columns, exposed: Columns) -> Table:
    """Return a row for each step: its time, a rank's work and exposed communication, and what bounds the time."""
    axes = sorted(set(exposed["axis"].tolist()))
    rows = []
    for row in range(min(len(steps["step"]), MAX_ROWS)):
        step = int(steps["step"][row])
        is_step = exposed["step"] == step
        rows.append(
            (
                number(step, str(step)),
                _time(int(steps["duration_ps"][row])),
                _time(int(steps["work_ps"][row])),
                *(_time(int(exposed["exposed_ps"][is_step & (exposed["axis"] == axis)].sum())) for axis in axes),
                _time(int(steps["work_alone_ps"][row])),
                _time(int(steps["lower_bound_ps"][row])),
            )
        )
    headings = ("Step", "Time", "Work", *(f"Exposed {axis}" for axis in axes), "Without network", "Lower bound")
    more = left_out(len(rows), len(steps["step"]), "step", REPLAYED_STEPS.table)
    caption = f"{title}: steps; work and exposed communication are means over ranks"
    return Table(caption=caption, headings=headings, rows=tuple(rows), left_out=more)


def ranks_table(title: str, ranks: Columns) -> Table:
    """Return a row for each rank in each step, those that work longest first."""
    order = np.argsort(-ranks["work_ps"], kind="stable")[:MAX_ROWS]
    rows = tuple(
        (
            number(int(ranks["step"][row]), str(ranks["step"][row])),
            number(int(ranks["rank"][row]), str(ranks["rank"][row])),
            *(_time(int(ranks[name][row])) for name in ("duration_ps", "work_ps", "exposed_ps")),
        )
        for row in order.tolist()
    )
    return Table(
        caption=f"{title}: ranks, those with most work first",
        headings=("Step", "Rank", "Time", "Work", "Exposed"),
        rows=rows,
        left_out=left_out(len(rows), len(ranks["step"]), "row", RANKS.table),
        is_folded=True,
    )


def _path_tables(run: Run, part: str) -> list[Table]:
    """Return what the critical path consists of, by axis, by rank and by link."""
    path, links = run.rows(PATH), run.rows(LINKS)
    if path is None:
        return []
    path, title = _own(path, part), _title(run, part)
    is_work = path["axis"] == WORK
    places = [
        _share_rows(path, np.ones(len(is_work), bool), "axis", "{}"),
        _share_rows(path, is_work, "rank", "work on rank {}"),
    ]
    rows = [row for own in places for row in own]
    if links is not None and run.fabric is not None:
        links, fabric = _own(links, part), run.fabric
        rows += [
            (words(fabric.link_label(int(port))), *_shares(int(time_ps), path))
            for port, time_ps in zip(links["port"][:MAX_ROWS], links["duration_ps"], strict=False)
        ]
    caption = f"{title}: critical path, by axis, by rank that works, and by the busiest link of each transfer"
    return [Table(caption=caption, headings=("On", "Time", "Of the path"), rows=tuple(rows))]


def _share_rows(path: Columns, is_own: BoolArray, by: str, name: str) -> list[tuple[Cell, ...]]:
    """Return a row for each value of a column, the longest first."""
    values, place = np.unique(path[by][is_own], return_inverse=True)
    time_ps = np.bincount(place.ravel(), weights=path["duration_ps"][is_own].astype(float), minlength=len(values))
    order = np.argsort(-time_ps, kind="stable")[:MAX_ROWS]
    return [(words(name.format(values[row])), *_shares(int(time_ps[row]), path)) for row in order.tolist()]


def _shares(time_ps: int, path: Columns) -> tuple[Cell, Cell]:
    fraction = time_ps / max(float(path["duration_ps"].sum()), 1.0)
    return _time(time_ps), number(fraction, percent(fraction))


def _parts(steps: Columns) -> list[str]:
    return list(dict.fromkeys(steps["part"].tolist())) if "part" in steps else [""]


def _own(table: Columns, part: str) -> Columns:
    """Return the rows of a part, all of a table without parts."""
    if "part" not in table:
        return table
    is_own = table["part"] == part
    return {name: values[is_own] for name, values in table.items()}


def _title(run: Run, part: str) -> str:
    return f"{run.label}: {part}" if part else run.label


def _time(time_ps: int) -> Cell:
    return number(time_ps, duration(time_ps)) if time_ps >= 0 else missing()
