"""Numbers that stand for something get its name beside them."""

from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord

# Hosts a (NIC 1) and b (NIC 0, two ports) on switch s; port 2k + 1 is the other direction of port 2k.
FABRIC = {
    "port": np.arange(6),
    "node": np.array([0, 2, 1, 2, 1, 2]),
    "node_name": np.array(["a", "s", "b", "s", "b", "s"]),
    "port_name": np.array(["eth0", "swp1", "eth0", "swp2", "eth1", "swp3"]),
    "nic": np.array([1, -1, 0, -1, 0, -1]),
}
PORT_LABELS = ["a:eth0", "s:swp1", "b:eth0", "s:swp2", "b:eth1", "s:swp3"]


def record(**tables: Any) -> RunRecord:
    """Return a record of the three nodes and other tables."""
    return RunRecord(kind="sim run", run={}, tables={"fabric": FABRIC, **tables})


def test_ports_and_nics_are_named() -> None:
    """A NIC by its first port; the ends of a transfer beside the fabric are GPUs, whose numbers name no NIC."""
    transfers = {"qp": np.array([0, -1]), "source": np.array([0, -1]), "destination": np.array([1, 1])}
    table = record(transfers=transfers).table("transfers")
    assert table.column_names == ["qp", "source", "source_label", "destination", "destination_label"]
    assert table.column("source").to_pylist() == [0, -1]
    assert table.column("source_label").to_pylist() == ["b:eth0", None]
    assert table.column("destination_label").to_pylist() == ["a:eth0", None]
    assert record().table("fabric").column("port_label").to_pylist() == PORT_LABELS


def test_rows_of_the_fabric_may_come_in_any_order() -> None:
    """Labels go by the number of the port, not by its row."""
    shuffled = {name: column[[4, 2, 0, 1, 3, 5]] for name, column in FABRIC.items()}
    drops = {"port": np.arange(6), "cause": np.full(6, "no route"), "packets": np.arange(6)}
    table = RunRecord(kind="sim run", run={}, tables={"fabric": shuffled, "drops": drops}).table("drops")
    assert table.column("port_label").to_pylist() == PORT_LABELS


def test_flags_codes_and_addresses_are_named() -> None:
    """`paused` is a truth value, a completion's status a name, an address dotted; -1 is none."""
    samples = {"time_ps": np.zeros(2, int), "paused": np.array([0, 1])}
    assert record(samples=samples).table("samples").column("paused").to_pylist() == [False, True]
    trials = {"status": np.array([12, 0, -1, 5])}
    names = record(trials=trials).table("trials").column("status").to_pylist()
    assert names == ["retry exceeded", "success", "none", "5"]
    hops = {"ipv4": np.array([0x0A000001, -1])}
    assert record(probed_hops=hops).table("probed_hops").column("ipv4_label").to_pylist() == ["10.0.0.1", None]


def test_a_record_without_a_fabric_has_no_labels_of_ports() -> None:
    """Nothing names them."""
    loads = {"port": np.array([0]), "demand_bps": np.array([1])}
    table = RunRecord(kind="ecmp analyze", run={}, tables={"loads": loads}).table("loads")
    assert table.column_names == ["port", "demand_bps"]
    assert table.schema.field("demand_bps").metadata[b"unit"] == b"bit/s"


def test_a_frame_has_units_and_categories() -> None:
    """Labels are categories, units are attributes."""
    pytest.importorskip("pandas")
    drops = {"port": np.array([1, 1]), "cause": np.array(["no route", "bit error"]), "packets": np.array([3, 4])}
    frame = record(drops=drops).frame("drops")
    assert frame.attrs["units"] == {"packets": "packets"}
    assert frame.groupby("port_label", observed=True)["packets"].sum().to_dict() == {"s:swp1": 7}
    assert str(frame["cause"].dtype) == "category"


def test_a_table_that_is_not_there_is_a_mistake_with_the_nearest_name() -> None:
    """`drop` for `drops`."""
    drops = {"port": np.array([1]), "cause": np.array(["no route"]), "packets": np.array([3])}
    with pytest.raises(RecordError) as caught:
        record(drops=drops).table("drop")
    assert str(caught.value) == (
        "record of 'sim run': unknown table 'drop'\n  did you mean 'drops'?\n  allowed: fabric, drops"
    )


def test_a_table_of_another_version_is_named() -> None:
    """A column that this version does not have, or has with another type, ends in no assertion."""
    transfers = {"qp": np.array([0]), "hue": np.array([7]), "bytes": np.array(["many"])}
    with pytest.raises(RecordError) as caught:
        record(transfers=transfers).table("transfers")
    next_step = "\n  next: read it with the version that wrote it, which run.json names"
    assert str(caught.value) == (
        f"record of 'sim run': transfers.hue is not in the schema{next_step}\n"
        f"record of 'sim run': transfers.bytes holds <U4, not int64{next_step}"
    )
