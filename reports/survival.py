"""Effective training time of a planned job: over the interval between saves, by part, by cause, and by knob."""

from collections.abc import Sequence

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports.blocks import Block, Cell, Figure, Section, Table, left_out, missing, number, percent, words
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

_ENDS = ("", "_low", "_high")
INTERVALS = select("survival_intervals", "interval_ns", *(f"effective_fraction{end}" for end in _ENDS))
PARTS = select("survival_parts", "part", *(f"share_fraction{end}" for end in _ENDS))
CAUSES = select(
    "survival_causes",
    *("cause", *(f"num_failures{end}" for end in _ENDS), "recovery_fraction", "recomputed_fraction"),
)
KNOBS = select(
    "survival_knobs",
    *("knob", "now", "then", "why", *(f"gain_fraction{end}" for end in _ENDS), "tenth_gain_fraction"),
)
CURVES = {"effective": "", "lower end": "_low", "upper end": "_high"}
MAX_ROWS = 64
_PERCENT = 100.0


def survival_section(runs: Sequence[Run]) -> Section | None:
    """Return the curve and the tables of each planned job, or None."""
    blocks: list[Block] = []
    for run in runs:
        if (intervals := run.rows(INTERVALS)) is not None:
            chart = interval_chart(run.label, intervals)
            blocks.append(Figure(drawing=draw_curves(chart), caption=chart.caption))
        for selection, table in ((KNOBS, _knobs), (PARTS, _parts), (CAUSES, _causes)):
            if (rows := run.rows(selection)) is not None:
                blocks.append(table(run.label, rows))
    if not blocks:
        return None
    lead = "What steps that are kept take of all time, by failure rates; intervals are 90 % of what their counts allow."
    return Section(anchor="survival", title="Planned effective time", lead=lead, blocks=tuple(blocks))


def interval_chart(label: str, intervals: Columns) -> LineChart:
    """Return the effective time with its interval over the work between two saves."""
    interval_ps = (intervals["interval_ns"] * float(PS_PER_NS)).tolist()
    curves = {
        name: list(zip(interval_ps, (_PERCENT * intervals[f"effective_fraction{end}"]).tolist(), strict=True))
        for name, end in CURVES.items()
    }
    least = min(share for points in curves.values() for _, share in points)
    return LineChart(
        across=Scale(
            name="work between saves", low=interval_ps[0], high=interval_ps[-1], unit="ps", is_logarithmic=True
        ),
        up=Scale(name="effective time", low=max(0.0, least), high=_PERCENT, unit="%"),
        curves=curves,
        caption=f"{label}: effective time by the work between two saves.",
    )


def _knobs(label: str, knobs: Columns) -> Table:
    shown = range(min(len(knobs["knob"]), MAX_ROWS))
    rows = tuple(
        (
            *(words(str(knobs[name][row])) for name in ("knob", "now", "then", "why")),
            *(_points(float(knobs[f"gain_fraction{end}"][row])) for end in _ENDS),
            _tenth(float(knobs["tenth_gain_fraction"][row])),
        )
        for row in shown
    )
    return Table(
        caption=f"{label}: knobs, the most gain first",
        headings=("Knob", "Now", "Alternative", "Why", "Gain, points", "Lower end", "Upper end", "By a tenth less"),
        rows=rows,
        left_out=left_out(len(rows), len(knobs["knob"]), "knob", "survival_knobs"),
    )


def _points(fraction: float) -> Cell:
    return number(fraction, f"{_PERCENT * fraction:+.2f}")


def _tenth(fraction: float) -> Cell:
    return missing() if fraction == -1 else _points(fraction)


def _parts(label: str, parts: Columns) -> Table:
    names = ("part", *(f"share_fraction{end}" for end in _ENDS))
    rows = zip(*(parts[name].tolist() for name in names), strict=True)
    return Table(
        caption=f"{label}: what becomes of the time",
        headings=("Part", "Share", "Lower end", "Upper end"),
        rows=tuple((words(part), *(number(share, percent(share)) for share in shares)) for part, *shares in rows),
    )


def _causes(label: str, causes: Columns) -> Table:
    count = len(causes["cause"])
    shown = range(min(count, MAX_ROWS))
    rows = tuple(
        (
            words(str(causes["cause"][row])),
            *(number(value := float(causes[f"num_failures{end}"][row]), f"{value:,.1f}") for end in _ENDS),
            *(
                number(value := float(causes[name][row]), percent(value))
                for name in ("recovery_fraction", "recomputed_fraction")
            ),
        )
        for row in shown
    )
    return Table(
        caption=f"{label}: causes of failures, the most costly first",
        headings=("Cause", "Failures", "Lower end", "Upper end", "Recovery", "Done again"),
        rows=rows,
        left_out=left_out(len(rows), count, "cause", "survival_causes"),
    )
