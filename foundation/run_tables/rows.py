"""Rows as columns of a table, and columns as rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import Columns
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.schema import Type

_DTYPES: Mapping[Type, type] = {"int64": np.int64, "float64": np.float64, "string": np.object_}


def to_columns(table: str, rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows of a table of the catalog as columns of its types; without rows, its required columns, empty."""
    schema = TABLES[table]
    columns: dict[str, NDArray[Any]] = {}
    for name in rows[0] if rows else schema.required:
        column = schema.column(name)
        assert column is not None, f"{table}.{name} is not in the schema"
        columns[name] = np.array([row[name] for row in rows], _DTYPES[column.type])
    return columns


def to_rows(columns: Columns) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values."""
    values = {name: column.tolist() for name, column in columns.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def tables_to_rows(tables: Mapping[str, Columns]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables of a record as JSON values."""
    return {name: to_rows(columns) for name, columns in tables.items()}


def num_rows(columns: Columns) -> int:
    """Return the length of a table's columns; 0 without columns."""
    return len(next(iter(columns.values()), ()))
