"""Plans of training jobs: minimum step time, memory of GPUs, and load on the network."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_flops
from fabrictune.reports.blocks import Cell, Section, Table, duration, missing, number, percent, words
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

PARTS = ("weights", "gradients", "optimizer", "activations")
STEP_PARTS = select("step_parts", "part", "duration_ps")
OPERATIONS = select("step_operations", "place", "part", "operation", "num_calls", "flops", "bytes", "duration_ps")
MEMORY = select("memory", "place", "flops", *(f"{part}_bytes" for part in PARTS))
VOLUMES = select(
    "volumes",
    "place",
    "axis",
    "operation",
    "num_requests",
    "buffer_bytes",
    "sent_bytes",
    "duration_ps",
)


def plans_section(runs: Sequence[Run]) -> Section | None:
    """Return a table of the steps of all plans, and of each plan its memory and its volumes, or None."""
    planned = {run.label: table for run in runs if (table := run.table(STEP_PARTS)) is not None}
    if not planned:
        return None
    blocks = [steps_table(planned)]
    blocks += [operations_table(run.label, table) for run in runs if (table := run.table(OPERATIONS)) is not None]
    blocks += [memory_table(run.label, table) for run in runs if (table := run.table(MEMORY)) is not None]
    blocks += [volumes_table(run.label, table) for run in runs if (table := run.table(VOLUMES)) is not None]
    lead = "Calculated, not run: operations at the stated rates, and requests on unshared links."
    return Section(anchor="plans", title="Plans", lead=lead, blocks=tuple(blocks))


def steps_table(planned: dict[str, Columns]) -> Table:
    """Return a row for each plan and a column for each part of a step that any of them has."""
    parts = list(dict.fromkeys(part for table in planned.values() for part in table["part"].tolist()))
    rows = []
    for label, table in planned.items():
        times = dict(zip(table["part"].tolist(), table["duration_ps"].tolist(), strict=True))
        rows.append((words(label), *(_duration(times[part]) if part in times else missing() for part in parts)))
    caption = "Shortest step. Exposed: the time that an axis' requests alone add to it"
    return Table(caption=caption, headings=("Plan", *(part.capitalize() for part in parts)), rows=tuple(rows))


def operations_table(label: str, operations: Columns) -> Table:
    """Return the operations of the place that they take longest at, the longest first, and how much each takes."""
    total_P = np.bincount(operations["place"], weights=operations["duration_ps"].astype(float))
    place = int(total_P.argmax())
    rows = np.flatnonzero(operations["place"] == place)
    rows = rows[np.argsort(-operations["duration_ps"][rows], kind="stable")]
    cells = [
        (
            words(str(operations["part"][row])),
            words(str(operations["operation"][row])),
            number(int(operations["num_calls"][row]), f"{operations['num_calls'][row]:,}"),
            number(float(operations["flops"][row]), format_flops(float(operations["flops"][row]))),
            _bytes(int(operations["bytes"][row])),
            _duration(int(operations["duration_ps"][row])),
            _share(float(operations["duration_ps"][row]) / max(total_P[place], 1.0)),
        )
        for row in rows
    ]
    headings = ("Part", "Operation", "Calls", "Operations", "Memory traffic", "Time", "Of the work")
    caption = f"{label}: where a step's time goes, on a GPU at place {place}"
    return Table(caption=caption, headings=headings, rows=tuple(cells), is_folded=True)


def memory_table(label: str, memory: Columns) -> Table:
    """Return what the GPUs at each pipeline place hold, most activations taken."""
    total = np.sum([memory[f"{name}_bytes"] for name in PARTS], axis=0)
    rows = [
        (
            number(int(place), str(place)),
            *(_bytes(int(memory[f"{name}_bytes"][row])) for name in PARTS),
            _bytes(int(total[row])),
            number(float(memory["flops"][row]), format_flops(float(memory["flops"][row]))),
        )
        for row, place in enumerate(memory["place"].tolist())
    ]
    headings = ("Place", *(name.capitalize() for name in PARTS), "Total", "Operations")
    return Table(caption=f"{label}: memory of a GPU by place in the pipeline", headings=headings, rows=tuple(rows))


def volumes_table(label: str, volumes: Columns) -> Table:
    """Return what a GPU at each pipeline place asks for in a step."""
    rows = [
        (
            number(int(volumes["place"][row]), str(volumes["place"][row])),
            words(str(volumes["axis"][row])),
            words(str(volumes["operation"][row])),
            number(int(volumes["num_requests"][row]), f"{volumes['num_requests'][row]:,}"),
            _bytes(int(volumes["buffer_bytes"][row])),
            _bytes(int(volumes["sent_bytes"][row])),
            _duration(int(volumes["duration_ps"][row])),
        )
        for row in range(len(volumes["place"]))
    ]
    headings = ("Place", "Axis", "Operation", "Requests", "Buffers", "Sent", "At least")
    caption = f"{label}: communication of a GPU in a step"
    return Table(caption=caption, headings=headings, rows=tuple(rows), is_folded=True)


def _bytes(num_bytes: int) -> Cell:
    return number(num_bytes, format_bytes(num_bytes))


def _share(fraction: float) -> Cell:
    return number(fraction, percent(fraction))


def _duration(duration_ps: int) -> Cell:
    return number(duration_ps, duration(duration_ps))
