"""Effective training time of a job that ran: its time by part over the job, and its outages.

Shapes: W windows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports.blocks import Block, Figure, Section, Table, duration, left_out, number, percent, words
from fabrictune.reports.charts import Points, Scale, StackChart
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select
from fabrictune.reports.stacks import draw_stack

GROUPS: Mapping[str, tuple[str, ...]] = {  # as the bars show them, kept steps at the bottom
    "steps that were kept": ("kept_ns",),
    "done again": ("recomputed_ns",),
    "stalls and overhead": ("stalls_ns", "overhead_ns"),
    "detection and decision": ("detection_ns", "decision_ns"),
    "ranks down, waiting for nodes or code": ("down_ns", "waiting_ns", "code_ns"),
    "start and restore": ("start_ns", "restore_ns"),
    "stopped or unknown": ("stopped_ns", "unknown_ns"),
}
PARTS = select("effective_parts", "part", "duration_ns", "share_fraction")
WINDOWS = select(
    *("effective_windows", "end_ns", "cumulative_fraction", "sliding_fraction"),
    *(column for columns in GROUPS.values() for column in columns),
)
OUTAGES = select(
    *("effective_outages", "begin_ns", "cause", "entity", "generation", "num_lost_steps", "duration_ns"),
    *("detection_ns", "recomputed_ns"),
)
MAX_ROWS = 64
_PERCENT = 100.0


def effective_section(runs: Sequence[Run]) -> Section | None:
    """Return the time of each job by part, over the job and by outage, or None."""
    blocks: list[Block] = []
    for run in runs:
        if (windows := run.rows(WINDOWS)) is not None:
            chart = time_chart(run.label, windows)
            blocks.append(Figure(drawing=draw_stack(chart), caption=chart.caption))
        if (parts := run.rows(PARTS)) is not None:
            blocks.append(_parts(run.label, parts))
        if (outages := run.rows(OUTAGES)) is not None:
            blocks.append(_outages(run.label, outages))
    if not blocks:
        return None
    lead = "Effective is the time of steps that were kept. Look for the widest band above it, and for what returns."
    return Section(anchor="effective", title="Effective training time", lead=lead, blocks=tuple(blocks))


def time_chart(label: str, windows: Columns) -> StackChart:
    """Return the shares of each window by group, with the cumulative and the sliding effective time."""
    end_ps_W = windows["end_ns"].astype(np.float64) * PS_PER_NS
    groups = {name: sum(windows[column] for column in columns) for name, columns in GROUPS.items()}
    total_W = np.maximum(np.asarray(sum(groups.values()), np.float64), 1.0)
    return StackChart(
        across=Scale(name="time", low=0, high=float(end_ps_W[-1]), unit="ps"),
        up=Scale(name="share of the time", low=0, high=_PERCENT, unit="%"),
        ends=end_ps_W.tolist(),
        shares={name: (_PERCENT * times_W / total_W).tolist() for name, times_W in groups.items()},
        lines={
            "effective so far": _points(end_ps_W, windows["cumulative_fraction"]),
            "effective in the sliding window": _points(end_ps_W, windows["sliding_fraction"]),
        },
        caption=f"{label}: what became of the time.",
    )


def _points(end_ps_W: FloatArray, fraction_W: FloatArray) -> Points:
    return list(zip(end_ps_W.tolist(), (_PERCENT * fraction_W).tolist(), strict=True))


def _parts(label: str, parts: Columns) -> Table:
    rows = zip(*(parts[name].tolist() for name in ("part", "duration_ns", "share_fraction")), strict=True)
    return Table(
        caption=f"{label}: time by part",
        headings=("Part", "Time", "Share"),
        rows=tuple(
            (words(part), number(time_ns, duration(time_ns * PS_PER_NS)), number(share, percent(share)))
            for part, time_ns, share in rows
        ),
    )


def _outages(label: str, outages: Columns) -> Table:
    count = len(outages["cause"])
    order = np.argsort(-outages["duration_ns"], kind="stable")[:MAX_ROWS]
    times = ("begin_ns", "duration_ns", "detection_ns", "recomputed_ns")
    rows = tuple(
        (
            *(words(str(outages[name][row])) for name in ("cause", "entity")),
            *(number(outages[name][row], duration(int(outages[name][row]) * PS_PER_NS)) for name in times),
            number(outages["num_lost_steps"][row], f"{outages['num_lost_steps'][row]:,}"),
        )
        for row in order.tolist()
    )
    return Table(
        caption=f"{label}: outages, the longest first",
        headings=("Cause", "Laid to", "Began", "Cost", "Detection", "Done again", "Steps done again"),
        rows=rows,
        left_out=left_out(len(rows), count, "outage", "effective_outages"),
    )
