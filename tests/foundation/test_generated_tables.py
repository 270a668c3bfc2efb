"""A table whose columns are made when they are read is the table written out."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation import records, row_ranges, tables
from fabrictune.foundation.generated_tables import GeneratedTable, SelectedRows
from fabrictune.foundation.records import RunRecord

NUM_ROWS = 25


def multiples(step: int, begin: int, end: int) -> np.ndarray:
    """Return rows of a column."""
    return step * np.arange(begin, end)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> GeneratedTable:
    """Return a table of 25 rows, made four at a time."""
    monkeypatch.setattr(row_ranges.ranges, "__defaults__", (4,))
    steps = {"qp": 1, "time_ps": 7}
    return GeneratedTable(NUM_ROWS, {name: partial(multiples, step) for name, step in steps.items()})


def test_a_column_is_made_of_its_ranges(table: GeneratedTable) -> None:
    """Whole, and a part that begins and ends within ranges."""
    assert table["time_ps"].tolist() == list(range(0, 7 * NUM_ROWS, 7))
    assert table.rows(3, 9)["qp"].tolist() == [3, 4, 5, 6, 7, 8]
    assert list(table) == ["qp", "time_ps"]
    assert len(table) == 2


def test_asking_for_a_name_makes_no_column() -> None:
    """`in` of a Mapping would make the column, and 300 MB with it."""

    def fail(begin: int, end: int) -> np.ndarray:
        raise AssertionError

    table = GeneratedTable(1, {"qp": fail})
    assert "qp" in table
    assert "port" not in table
    assert "qp" in SelectedRows(table, np.ones(1, bool))


def test_rows_are_selected_range_by_range(table: GeneratedTable) -> None:
    """The same rows as of the table written out."""
    is_selected = np.arange(NUM_ROWS) % 3 == 0
    expected = SelectedRows(dict(table), is_selected)
    selected = SelectedRows(table, is_selected)
    assert {name: column.tolist() for name, column in selected.items()} == {
        name: column.tolist() for name, column in expected.items()
    }


def test_a_record_of_a_generated_table_has_the_same_bytes(
    table: GeneratedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three groups of rows, of 10, 10 and 5: written one by one, or from a table that is there."""
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(records, "ROW_GROUP_ROWS", 10)
    written = []
    for name, columns in {"generated": table, "whole": dict(table)}.items():
        folder = RunRecord(kind="sim run", run={}, tables={"aborts": columns}).write(tmp_path / name)
        written.append((folder / "aborts.parquet").read_bytes())
    assert written[0] == written[1]
    assert RunRecord.read(tmp_path / "generated").tables["aborts"]["qp"].tolist() == list(range(NUM_ROWS))


def test_columns_of_a_generated_table_are_held_against_the_schema(table: GeneratedTable, tmp_path: Path) -> None:
    """By their first row."""
    columns = {name: partial(table.column, name) for name in table}
    wrong = GeneratedTable(NUM_ROWS, {**columns, "qp": lambda begin, end: np.zeros(end - begin)})
    with pytest.raises(AssertionError, match=r"aborts\.qp holds float64, not int64"):
        RunRecord(kind="sim run", run={}, tables={"aborts": wrong}).write(tmp_path / "wrong")
