"""Public LLDP outputs give the labs they were taken from."""

from pathlib import Path

import pytest

from fabrictune.topology.importers import import_fabric

pytestmark = pytest.mark.real


def test_collapsed_json_of_a_sonic_switch(real_data: Path) -> None:
    """33 interfaces, of which eth0 is for management; Ethernet96's nameless neighbour is switch13, as its id says."""
    imported = import_fabric([real_data / "lldp" / "lldpctl.json"])
    fabric = imported
    assert (fabric.node_name_N, fabric.num_ports // 2) == (("arc-switch1025", "switch13"), 32)
    assert "arc-switch1025:Ethernet96 -> switch13:Ethernet25" in [fabric.link_label(port) for port in range(0, 64, 2)]
    assert imported.notes[:2] == (
        "management interfaces, left out with their links: 1 (first arc-switch1025:eth0)",
        "neighbours without a name, known by chassis id: 1 (first on arc-switch1025:Ethernet96, taken as switch13)",
    )


def test_json0_of_one_switch(real_data: Path) -> None:
    """spine01 hears six switches, each on its swp1."""
    fabric = import_fabric([real_data / "lldp" / "spine01.json0.json"])
    leaves = ("leaf01", "leaf02", "leaf03", "leaf04", "exit02", "exit01")
    labels = [fabric.link_label(port) for port in range(0, fabric.num_ports, 2)]
    assert labels == [f"spine01:swp{row} -> {leaf}:swp1" for row, leaf in enumerate(leaves, start=1)]


def test_capture_of_a_whole_lab(real_data: Path) -> None:
    """14 devices, 4 of them silent; 44 adjacencies are 22 links, of which 2 lead from a switch to itself."""
    imported = import_fabric([real_data / "lldp" / "dual-attach_bgp_numbered.lldp.output"])
    fabric = imported
    assert (fabric.num_nodes, fabric.num_ports // 2) == (10, 20)
    assert imported.notes[0] == "devices without a link to a neighbour, left out: 4 (first server101)"
    assert [note.endswith("from a node to itself, left out") for note in imported.notes[1:3]] == [True, True]
    assert imported.findings == ()  # every link is heard from both ends


def test_a_switch_alone_and_in_the_capture_is_the_same(real_data: Path) -> None:
    """spine01's record was copied into a file of its own, so its links are among those of the whole lab."""
    alone = import_fabric([real_data / "lldp" / "spine01.json0.json"])
    whole = import_fabric([real_data / "lldp" / "dual-attach_bgp_numbered.lldp.output"])
    labels = {whole.link_label(port) for port in range(whole.num_ports)}
    assert {alone.link_label(port) for port in range(alone.num_ports)} <= labels
