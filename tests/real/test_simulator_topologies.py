"""Public topologies of simulators give what their headers declare, and public files the findings that are in them."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.topology.importers import import_fabric
from fabrictune.topology.validation import validate_fabric

pytestmark = pytest.mark.real


def test_hpcc_header_rules(real_data: Path) -> None:
    """66 nodes, 1 switch, 65 links of 100 Gbps and 1 us; the 192 links and the note below them are not read."""
    fabric = import_fabric([real_data / "sim" / "hpcc_topology.txt"])
    assert np.bincount(fabric.node_kind_N).tolist() == [65, 1]
    assert fabric.num_ports == 2 * 65
    assert set(fabric.port_rate_bps_P.tolist()) == {100 * 10**9}
    assert set(fabric.port_delay_ps_P.tolist()) == {10**6}


def test_htsim_leaf_spine(real_data: Path) -> None:
    """32 hosts; 8 down and 2 up on a leaf make 4 leaves and 8 links up; 4 down on a spine make 2 spines."""
    imported = import_fabric([real_data / "sim" / "leaf_spine_tiny.topo"])
    fabric = imported
    assert np.bincount(fabric.node_tier_N).tolist() == [32, 4, 2]
    assert fabric.num_ports == 2 * (32 + 8)
    assert set(fabric.port_delay_ps_P.tolist()) == {10**6}
    assert [note.rpartition(": ")[2] for note in imported.notes] == ["Switch_Latency_ns left out"] * 2


@pytest.mark.parametrize(
    ("file", "rules"),
    [
        ("clab/clos02.clab.yml", set()),
        ("clab/basic-clab-sonic-l2-evpn.clab.yml", set()),
        ("clab/01-linux-nodes.clab.yml", {"fabric.isolated-node"}),  # l3 has no link
        ("sonic/t0-s6000.config_db.json", set()),
        ("sim/leaf_spine_tiny.topo", set()),
    ],
)
def test_public_topologies_have_the_findings_they_should(real_data: Path, file: str, rules: set[str]) -> None:
    """Nothing is found in what was drawn evenly."""
    imported = import_fabric([real_data / file])
    assert {finding.id for finding in (*imported.findings, *validate_fabric(imported).findings)} == rules


def test_two_widths_of_one_cable_are_found(real_data: Path) -> None:
    """Two links of the example subnet show 1xSDR at one end and 4xSDR at the other."""
    imported = import_fabric([real_data / "ib" / "opensm_doc_chassis.ibnetdiscover.txt"])
    mismatches = [finding for finding in imported.findings if finding.id == "cabling.speed-mismatch"]
    assert len(mismatches) == 2
    assert all(len(finding.evidence) == 2 for finding in mismatches)
