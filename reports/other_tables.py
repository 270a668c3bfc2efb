"""Tables that no section of the page reads, shown as their schemas in `foundation/run_tables` describe them.

A new kind of record is on the page as soon as it writes: its tables are here until they have a section of their own.
Of each table the first rows are shown, with the number of all; numbers of ports, NICs and addresses by their names.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.record_files import RecordFile
from fabrictune.foundation.records import Columns
from fabrictune.foundation.run_tables.arrow import to_labelled_arrow
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.rows import num_rows
from fabrictune.foundation.run_tables.schema import Column, TableSchema
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_number, format_rate
from fabrictune.reports.blocks import (
    Cell,
    Section,
    Table,
    duration,
    left_out,
    missing,
    number,
    plural,
    shortened,
    words,
)
from fabrictune.reports.record_view import Run

MAX_ROWS = 12  # of a table; one with more is folded
MAX_COLUMNS = 24
MAX_TEXT = 60  # characters of a cell
NO_VALUE = -1  # what records hold for a value that does not exist
UNKNOWN_COLUMN = "a column that this version does not know"
SHOW: Mapping[str, Callable[[float], str]] = {  # by unit
    "ps": duration,
    "ns": lambda duration_ns: duration(duration_ns * PS_PER_NS),
    "bit/s": format_rate,
    "bytes": format_bytes,
}


def other_tables_section(runs: Sequence[Run], tables_drawn: Mapping[str, Collection[str]]) -> Section | None:
    """Return every table of the runs that is not among those drawn (by label of a run), and their other files."""
    blocks: list[Table] = []
    for run in runs:
        others = {name: table for name, table in run.record.tables.items() if name not in tables_drawn[run.label]}
        tables = {name: others[name] for name in TABLES if name in others}
        shown = (_table(run, TABLES[name], columns) for name, columns in tables.items() if num_rows(columns))
        blocks += shown
        empty = [name for name, columns in tables.items() if not num_rows(columns)]
        if empty:
            caption = f"{run.label}: no rows in {', '.join(empty)}"
            blocks.append(Table(headings=(), rows=(), caption=caption))
        if run.files:
            blocks.append(_files(run))
    if not blocks:
        return None
    lead = (
        "What the record holds beyond the sections above; docs/reference/record-tables.md says what each column means."
    )
    return Section(anchor="tables", title="Other tables", lead=lead, blocks=tuple(blocks))


def _table(run: Run, schema: TableSchema, columns: Columns) -> Table:
    """Return the first rows of a table."""
    total = num_rows(columns)
    names = list(columns)[:MAX_COLUMNS]
    head = {name: np.asarray(columns[name])[:MAX_ROWS] for name in names}
    labelled = _labelled(run, schema, head)
    cells = [
        _cells(schema.column(name), head[name], labelled.get(name), labelled.get(f"{name}_label")) for name in names
    ]
    rest = [left_out(min(total, MAX_ROWS), total, "row", schema.name)]
    if len(columns) > len(names):
        rest.append(f"{plural(len(columns) - len(names), 'column')} more.")
    return Table(
        caption=f"{run.label}: {schema.name}, {plural(total, 'row')}; a row is {_plain_words(schema.row)}",
        headings=tuple(map(_cut, names)),
        hints=tuple(_hint(schema.column(name)) for name in names),
        rows=tuple(zip(*cells, strict=True)),
        left_out=" ".join(filter(None, rest)),
        is_folded=total > MAX_ROWS,
    )


def _labelled(run: Run, schema: TableSchema, head: Columns) -> dict[str, list[Any]]:
    """Return the rows as people read them, by column and `<column>_label`; without columns that break the schema."""
    sound = {
        name: typed
        for name, values in head.items()
        if (column := schema.column(name)) is not None and (typed := _typed(column, values)) is not None
    }
    whole = {name: values for name, values in sound.items() if _refers_within(schema.column(name), sound)}
    return to_labelled_arrow(schema, whole, run.fabric_columns).to_pydict() if whole else {}


def _typed(column: Column, values: NDArray[Any]) -> NDArray[Any] | None:
    """Return values as the column's type, None where they are of another."""
    match column.type:
        case "string" if all(isinstance(value, str) for value in values.tolist()):
            return values
        case "int64" if values.dtype.kind in "ib":
            return values.astype(np.int64)
        case "float64" if values.dtype.kind in "iuf":
            return values.astype(np.float64)
    return None


def _refers_within(column: Column | None, columns: Columns) -> bool:
    """Return whether the column that says in which rows this one refers to something is there, too."""
    return column is not None and (not column.refers_where or column.refers_where in columns)


def _cells(column: Column | None, raw: NDArray[Any], shown: list[Any] | None, labels: list[Any] | None) -> list[Cell]:
    """Return the cells of a column: labels where its numbers stand for something, else the values in their unit."""
    if column is None or shown is None:
        return [words(_cut(str(value))) for value in raw.tolist()]
    if labels is not None and any(label is not None for label in labels):
        return [missing() if label is None else words(_cut(label)) for label in labels]
    return [_cell(column, value) for value in shown]


def _cell(column: Column, value: Any) -> Cell:
    match value:
        case bool():
            return words("yes" if value else "no")
        case str():
            return words(_cut(value))
        case None:
            return missing()
    if value == NO_VALUE or math.isnan(value):
        return missing()
    if column.unit in SHOW and math.isfinite(value):
        return number(value, SHOW[column.unit](value))
    is_quantity = column.unit or column.type == "float64"
    return number(value, format_number(value) if is_quantity else str(value))


def _files(run: Run) -> Table:
    """Return the files beside the tables."""
    return Table(
        caption=f"{run.label}: files for other tools",
        headings=("File", "Rows", "Size", "Content"),
        rows=tuple(map(_file_row, run.files)),
    )


def _file_row(file: RecordFile) -> tuple[Cell, ...]:
    rows = missing() if file.num_rows is None else number(file.num_rows, f"{file.num_rows:,}")
    return words(file.name), rows, number(file.num_bytes, format_bytes(file.num_bytes)), words(file.meaning)


def _hint(column: Column | None) -> str:
    """Return what a column means, with its unit."""
    if column is None:
        return UNKNOWN_COLUMN
    return _plain_words(f"{column.meaning} ({column.unit})" if column.unit else column.meaning)


def _plain_words(text: str) -> str:
    return text.replace("`", "")


def _cut(text: str) -> str:
    return shortened(text, MAX_TEXT)
