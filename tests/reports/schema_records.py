"""Records of every kind that the catalog of tables knows, each table with a few rows of plain values."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.schema import FAMILY, Column, TableSchema
from tests.reports.conftest import two_flow_tables

KINDS = tuple(sorted({kind for table in TABLES.values() for kind in table.kinds}))
NUM_ROWS = 3
OF_TWO_FLOWS = two_flow_tables()  # tables that refer to one another


def record_of_kind(kind: str, *, num_rows: int = NUM_ROWS) -> RunRecord:
    """Return a record with every table of a kind."""
    tables = {
        name: OF_TWO_FLOWS.get(name) or _rows(table, num_rows) for name, table in TABLES.items() if kind in table.kinds
    }
    return RunRecord(kind=kind, run={"name": kind}, tables=tables)


def _rows(table: TableSchema, num_rows: int) -> Columns:
    return {column.name: _values(column, num_rows) for column in table.columns if not column.name.endswith(FAMILY)}


def _values(column: Column, num_rows: int) -> Any:
    if column.name == "metric":  # of a sweep: each point has every objective
        return np.array(["makespan"] * num_rows, object)
    if column.type == "string":
        return np.array([f"{column.name} {row}" for row in range(num_rows)], object)
    if column.codes:
        return np.array([row % 2 for row in range(num_rows)])
    kind: Mapping[str, Any] = {"int64": np.int64, "float64": np.float64}
    return np.arange(num_rows).astype(kind[column.type])
