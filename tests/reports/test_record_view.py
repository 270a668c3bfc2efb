"""A malformed record is refused with the table and column that are wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import PORTS, open_run

MakeRecord = Callable[..., RunRecord]


def changed(record: RunRecord, table: str, **columns: Any) -> dict[str, Any]:
    """Return a table of the record with columns replaced, or left out where None."""
    wanted = {**record.tables[table], **columns}
    return {table: {name: column for name, column in wanted.items() if column is not None}}


@pytest.mark.parametrize("table", ["fabric", "transfers", "ports", "samples", "loads", "collisions"])
def test_a_missing_column_is_named(make_record: MakeRecord, table: str) -> None:
    """Every column the page reads is checked, whichever figure needs it; optional ones may be missing."""
    column = {"fabric": "rail", "transfers": "finish_ps", "ports": "max_queue_bytes"}.get(table)
    column = column or {"samples": "paused", "loads": "rate_bps", "collisions": "qp"}[table]
    broken = make_record(tables=changed(make_record(), table, **{column: None}))
    with pytest.raises(RecordError) as caught:
        build_page([broken], title="broken", labels=["sim run"])
    assert caught.value.mistakes[0].where == f"sim run: {table}.{column}"
    assert caught.value.mistakes[0].found == "the column is missing"


def test_text_where_a_number_belongs_is_refused(make_record: MakeRecord) -> None:
    """A column of another type would fail later, deep in a figure."""
    broken = make_record(tables=changed(make_record(), "ports", pauses=np.array(["many"] * 12)))
    with pytest.raises(RecordError, match=r"^broken: ports\.pauses: values of type <U4, or missing ones"):
        open_run(broken, "broken")


def test_missing_values_are_refused(make_record: MakeRecord) -> None:
    """Parquet's nulls arrive as NaN in a float column: a time that is unknown is -1 in a record."""
    finish_ps = np.array([100_000_000.0, np.nan])
    broken = make_record(tables=changed(make_record(), "transfers", finish_ps=finish_ps))
    with pytest.raises(RecordError, match=r"^broken: transfers\.finish_ps: values of type float64, or missing ones"):
        open_run(broken, "broken")


def test_columns_of_unequal_length_are_refused(make_record: MakeRecord) -> None:
    """One row too few in a column shifts every number after it."""
    broken = make_record(tables=changed(make_record(), "samples", paused=np.zeros(3, np.int64)))
    with pytest.raises(RecordError, match=r"^broken: samples\.paused: 3 rows where another column has 4$"):
        open_run(broken, "broken")


@pytest.mark.parametrize("port", [12, -1])
def test_a_port_the_fabric_does_not_have_is_refused(make_record: MakeRecord, port: int) -> None:
    """Ports are 0 to 11; a negative one would silently count from the end."""
    broken = make_record(tables=changed(make_record(), "collisions", port=np.array([8, port])))
    with pytest.raises(RecordError, match=rf"^broken: collisions\.port: port {port} in row 1\n  allowed: 0 to 11"):
        build_page([broken], title="broken", labels=["broken"])


def test_a_nic_the_fabric_does_not_have_is_refused(make_record: MakeRecord) -> None:
    """NICs are 0 to 3."""
    broken = make_record(tables=changed(make_record(), "transfers", destination=np.array([2, 4])))
    with pytest.raises(RecordError, match=r"^broken: transfers\.destination: NIC 4"):
        open_run(broken, "broken")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("port", np.array([0, *range(11)])),  # port 0 twice
        ("peer_port", np.roll(np.arange(12), 1)),  # a circle, no pairs
        ("nic", np.full(12, 10**9)),  # an array of a billion would be made for it
        ("rate_bps", np.zeros(12, np.int64)),  # loads would be infinite
    ],
)
def test_a_table_that_is_no_fabric_is_refused(make_record: MakeRecord, column: str, values: Any) -> None:
    """Each rule of the table `fabric` names its column."""
    broken = make_record(tables=changed(make_record(), "fabric", **{column: values}))
    with pytest.raises(RecordError) as caught:
        open_run(broken, "broken")
    assert caught.value.mistakes[0].where == f"broken: fabric.{column}"


def test_a_port_in_two_rows_is_refused(make_record: MakeRecord) -> None:
    """Which of the two counts would be anyone's guess."""
    broken = make_record(tables=changed(make_record(), "loads", port=np.array([0, *range(11)])))
    with pytest.raises(RecordError, match=r"^broken: loads\.port: a port in two rows"):
        open_run(broken, "broken")


def test_ports_without_a_row_count_as_idle(make_record: MakeRecord) -> None:
    """A record may list busy ports only, in any order: 8 then 0 of 12."""
    ports = {name: column[[8, 0]] for name, column in make_record().tables["ports"].items()}
    run = open_run(make_record(tables={"ports": ports}), "sparse")
    ports_P = run.table(PORTS)
    assert ports_P is not None
    assert ports_P["tx_bytes"].tolist() == [1_000_000, 0, 0, 0, 0, 0, 0, 0, 2_000_000, 0, 0, 0]
