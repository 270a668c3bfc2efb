"""Predicted beside measured: how far each operation's simulated time lies from the clock's."""

from collections.abc import Sequence

from foundation.records import Columns
from foundation.units import format_bytes, format_duration
from reports.blocks import Cell, Section, Table, left_out, number, words
from reports.runs import Run

MAX_ROWS = 40


def comparison_section(runs: Sequence[Run]) -> Section | None:
    """Return one table for each run that compared, or None."""
    tables = tuple(comparison_table(run.label, run.comparison) for run in runs if run.comparison is not None)
    if not tables:
        return None
    lead = "The same communication, once on this machine's clock and once in the simulator."
    return Section(anchor="comparison", title="Measured beside simulated", lead=lead, blocks=tables)


def comparison_table(label: str, comparison: Columns) -> Table:
    """Return a row for each operation and size, in the record's order."""
    total = len(comparison["operation"])
    shown = min(total, MAX_ROWS)
    return Table(
        caption=label,
        headings=("Operation", "Size", "Measured", "Simulated", "Ratio"),
        rows=tuple(_row(comparison, row) for row in range(shown)),
        left_out=left_out(shown, total, "operation", "comparison"),
    )


def _row(comparison: Columns, row: int) -> tuple[Cell, ...]:
    measured_ps, simulated_ps = float(comparison["measured_ps"][row]), float(comparison["simulated_ps"][row])
    size, ratio = int(comparison["bytes"][row]), float(comparison["ratio"][row])
    return (
        words(str(comparison["operation"][row])),
        number(size, format_bytes(size)),
        number(measured_ps, format_duration(measured_ps)),
        number(simulated_ps, format_duration(simulated_ps)),
        number(ratio, f"{ratio:.3g}"),
    )
