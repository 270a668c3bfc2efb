"""A section declares what it reads, and gets it checked or a message that names the column."""

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.record_view import open_run
from fabrictune.reports.selection import select


def test_a_selection_outside_the_schema_is_a_programming_error() -> None:
    """A misspelt column would leave its section out of every page."""
    with pytest.raises(AssertionError, match="columns outside table faults"):
        select("faults", "begin")


def test_a_table_may_have_more_columns_than_are_read_and_lack_others() -> None:
    """Records of another version: only what is read has to be there."""
    tables = {"drops": {"port": np.array([1]), "packets": np.array([2], np.int32), "colour": np.array(["red"])}}
    run = open_run(RunRecord(kind="sim run", run={}, tables=tables), "run")
    table = run.table(select("drops", "port", "packets"))
    assert table is not None
    assert {name: column.tolist() for name, column in table.items()} == {"port": [1], "packets": [2]}
    assert table["packets"].dtype == np.int64
    with pytest.raises(RecordError) as caught:
        run.table(select("drops", "port", "cause"))
    assert str(caught.value) == ("run: drops.cause: the column is missing\n  allowed: a text column in table 'drops'")


def test_rows_are_none_for_an_empty_table_and_for_none() -> None:
    """A section is left out in both cases."""
    aborts = select("aborts", "qp")
    empty = open_run(RunRecord(kind="sim run", run={}, tables={"aborts": {"qp": np.zeros(0, np.int64)}}), "run")
    assert empty.table(aborts) is not None
    assert empty.rows(aborts) is None
    without = open_run(RunRecord(kind="sim run", run={}), "run")
    assert without.table(aborts) is None
    assert without.rows(aborts) is None
