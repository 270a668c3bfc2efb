"""The project's own fabric file loses nothing, and the run record's table says what is where."""

import json
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import FabricError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import fabric_table, read_fabric, write_fabric


def test_file_is_lossless(small_clos: Fabric, tmp_path: Path) -> None:
    """Every column comes back with the values and the type it had."""
    write_fabric(small_clos, tmp_path / "fabric.json")
    found = vars(read_fabric(tmp_path / "fabric.json"))
    for name, value in vars(small_clos).items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_same_fabric_gives_same_bytes(small_clos: Fabric, tmp_path: Path) -> None:
    """A file written from what was read is the file that was read."""
    write_fabric(small_clos, tmp_path / "first.json")
    write_fabric(read_fabric(tmp_path / "first.json"), tmp_path / "second.json")
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_every_malformed_column_is_told(fat_tree: Fabric, tmp_path: Path) -> None:
    """Three columns of the wrong kind are three mistakes with their lines."""
    path = tmp_path / "fabric.json"
    write_fabric(fat_tree, path)
    tree = json.loads(path.read_text())
    tree["nodes"]["name"][0] = 7
    tree["ports"]["rate_bps"][0] = 1.5
    del tree["nics"]["rail"]
    path.write_text(json.dumps(tree, indent=1))
    with pytest.raises(FabricError) as raised:
        read_fabric(path)
    assert [mistake.where.partition(": ")[2] for mistake in raised.value.mistakes] == [
        "nodes.name",
        "ports.rate_bps",
        "nics.rail",
    ]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """JSON that does not say what it is may be anything."""
    path = tmp_path / "other.json"
    path.write_text('{"nodes": {}}')
    with pytest.raises(FabricError, match="not a fabric written by fabrictune, or of another version"):
        read_fabric(path)


def test_table_has_a_row_for_every_port(small_clos: Fabric) -> None:
    """NIC 9 is rail 1 of host 1; its ToR port has neither NIC nor rail."""
    table = fabric_table(small_clos)
    port = int(np.nonzero(table["nic"] == 9)[0][0])
    assert {name: column[port] for name, column in table.items() if name not in ("port", "peer_port", "node")} == {
        "node_name": "host1",
        "node_kind": "host",
        "tier": 0,
        "group": 0,
        "port_name": "nic1",
        "rate_bps": 200_000_000_000,
        "delay_ps": 15_000,
        "nic": 9,
        "rail": 1,
    }
    peer = table["peer_port"][port]
    assert (table["node_name"][peer], table["nic"][peer], table["rail"][peer]) == ("tor0-1", -1, -1)
    assert {len(column) for column in table.values()} == {small_clos.num_ports}


def test_a_file_without_notes_is_read_and_one_with_foreign_notes_refused(fat_tree: Fabric, tmp_path: Path) -> None:
    """Files of earlier versions have none; a note is text."""
    path = tmp_path / "fabric.json"
    write_fabric(fat_tree, path)
    tree = json.loads(path.read_text())
    assert "notes" not in tree
    assert (read_fabric(path).notes, read_fabric(path).findings) == ((), ())
    path.write_text(json.dumps({**tree, "notes": [7]}))
    with pytest.raises(FabricError, match="notes that are no list of text"):
        read_fabric(path)
    path.write_text(json.dumps({**tree, "findings": [{"id": "cabling.one-sided"}]}))
    with pytest.raises(FabricError, match="findings that are none"):
        read_fabric(path)
