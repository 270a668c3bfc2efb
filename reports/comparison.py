"""Comparison of predictions with measurements: each operation's simulated time against the clock's.

Repetitions of one operation and size share a row: a clock on a shared machine is judged by its median and by the
spread of the middle half, not by single readings.

Shapes: R rows of the table `comparison`.
"""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_bytes, format_duration
from fabrictune.reports.blocks import Cell, Section, Table, left_out, number, words
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

COMPARISON = select("comparison", "operation", "bytes", "measured_ps", "simulated_ps", "ratio")
MAX_ROWS = 40


def comparison_section(runs: Sequence[Run]) -> Section | None:
    """Return one table for each run that compared, or None."""
    tables = tuple(comparison_table(run.label, table) for run in runs if (table := run.rows(COMPARISON)) is not None)
    if not tables:
        return None
    lead = "The same communication measured and simulated; medians over repetitions."
    return Section(anchor="comparison", title="Measured and simulated times", lead=lead, blocks=tables)


def comparison_table(label: str, comparison: Columns) -> Table:
    """Return a row for each operation and size, in alphabetical order and then by size."""
    name_R, size_R = comparison["operation"].astype(str), comparison["bytes"]
    kinds = sorted(set(zip(name_R.tolist(), size_R.tolist(), strict=True)))
    rows = [_row(name, size, comparison, (name_R == name) & (size_R == size)) for name, size in kinds[:MAX_ROWS]]
    return Table(
        caption=label,
        headings=("Operation", "Size", "Repetitions", "Measured", "p25", "p75", "Simulated", "Ratio"),
        rows=tuple(rows),
        left_out=left_out(len(rows), len(kinds), "operation", "comparison"),
    )


def _row(name: str, size: int, comparison: Columns, is_of_kind_R: np.ndarray) -> tuple[Cell, ...]:
    measured = float(np.median(comparison["measured_ps"][is_of_kind_R]))
    low, high = percentiles(comparison["measured_ps"][is_of_kind_R], (0.25, 0.75)).tolist()
    simulated = float(np.median(comparison["simulated_ps"][is_of_kind_R]))
    ratio = float(np.median(comparison["ratio"][is_of_kind_R]))
    times = int(is_of_kind_R.sum())
    return (
        words(name),
        number(size, format_bytes(size)),
        number(times, f"{times:,}"),
        *(number(value, format_duration(value)) for value in (measured, low, high, simulated)),
        number(ratio, format_metric(ratio, "ratio")),
    )
