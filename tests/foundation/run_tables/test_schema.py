"""What is written is held against the schema, and files carry units and meanings."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES, check_tables
from fabrictune.foundation.run_tables.rows import num_rows, tables_to_rows, to_columns, to_rows

QPS = np.array([0, 1])
ABORTS = {"qp": QPS, "time_ps": QPS}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"abort": ABORTS}, "abort is not in the catalog"),
        ({"aborts": {"qp": QPS}}, "aborts.time_ps is missing"),
        ({"aborts": {**ABORTS, "when": QPS}}, "aborts.when is not in the schema"),
        ({"aborts": {**ABORTS, "qp": QPS / 2}}, "aborts.qp holds float64, not int64"),
        ({"aborts": {**ABORTS, "qp": np.array(["a", "b"])}}, "aborts.qp holds <U1, not int64"),
        ({"training": to_columns("training", [])}, "training is not a table of 'sim run'"),
    ],
)
def test_a_table_outside_the_schema_is_a_programming_error(tmp_path: Path, tables: Any, message: str) -> None:
    """Unknown table, missing, unknown and mistyped column, a table of another kind of record."""
    with pytest.raises(AssertionError) as caught:
        RunRecord(kind="sim run", run={}, tables=tables).write(tmp_path / "run")
    assert str(caught.value) == message
    assert not (tmp_path / "run").exists()


def test_optional_columns_and_families_may_be_there_or_not() -> None:
    """A bench has percentiles that an import lacks; a sweep has a column for each key it varies."""
    check_tables("coll bench", {"measurements": {**to_columns("measurements", []), "p99_ns": np.zeros(0)}})
    check_tables("sim sweep", {"points": {**to_columns("points", []), "vary.law.name": np.array([], object)}})
    assert "vary.*" not in TABLES["points"].required


def test_a_file_carries_types_units_and_meanings(tmp_path: Path) -> None:
    """An empty text column is text in the file too."""
    RunRecord(kind="sim run", run={}, tables={"drops": to_columns("drops", [])}).write(tmp_path / "run")
    schema = pq.read_schema(tmp_path / "run" / "drops.parquet")
    assert {field.name: str(field.type) for field in schema} == {"port": "int64", "cause": "string", "packets": "int64"}
    assert schema.field("packets").metadata == {b"unit": b"packets", b"meaning": b"packets lost"}


def test_every_column_whose_name_ends_in_a_unit_has_it() -> None:
    """The unit in a name and the unit in the schema are one."""
    units = {"_ps": "ps", "_ns": "ns", "_bps": "bit/s", "_bytes": "bytes", "_packets": "packets"}
    for table in TABLES.values():
        for column in table.columns:
            for suffix, unit in units.items():
                assert not column.name.endswith(suffix) or column.unit == unit, f"{table.name}.{column.name}"


def test_rows_become_columns_of_the_schema_and_rows_again() -> None:
    """Truth values are stored as 0 and 1; no rows give empty columns of the right types."""
    rows: list[dict[str, Any]] = [{"port": 3, "cause": "no route", "packets": 2}]
    columns = to_columns("drops", rows)
    assert [column.dtype for column in columns.values()] == [np.int64, np.object_, np.int64]
    assert to_rows(columns) == rows
    assert tables_to_rows({"drops": columns}) == {"drops": rows}
    assert {name: column.dtype for name, column in to_columns("drops", []).items()} == {
        name: column.dtype for name, column in columns.items()
    }
    assert (num_rows(columns), num_rows(to_columns("drops", [])), num_rows({})) == (1, 0, 0)
    with pytest.raises(AssertionError, match=r"^drops\.reason is not in the schema$"):
        to_columns("drops", [{"reason": "x"}])
