"""Public ibnetdiscover outputs give the subnets that their authors show."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.topology.fabric import NodeKind
from fabrictune.topology.importers import import_fabric

pytestmark = pytest.mark.real


def test_superbenchmark_subnet(real_data: Path) -> None:
    """8 switches in three tiers and 10 adapters; of 18 links at 200 Gbps one leads to an aggregation node, left out."""
    imported = import_fabric([real_data / "ib" / "ib_traffic_topo_aware_ibnetdiscover.txt"])
    fabric = imported
    assert (fabric.num_nodes, fabric.num_nics, fabric.num_ports // 2) == (18, 10, 17)
    assert np.bincount(fabric.node_tier_N).tolist() == [10, 5, 2, 1]
    is_switch_P = (fabric.node_kind_N == NodeKind.SWITCH)[fabric.port_node_P]
    assert int((is_switch_P & is_switch_P[fabric.port_peer_P]).sum()) // 2 == 7
    assert set(fabric.port_rate_bps_P.tolist()) == {200_000_000_000}
    assert fabric.nic_label(0) == "RMD701091901003:ibp11s0f0/1"
    assert imported.notes[0] == "SHARP aggregation nodes, left out with their links: 1"
    assert imported.findings == ()


def test_opensm_documentation(real_data: Path) -> None:
    """The older form: 2 switches, 4 adapters, 7 links, of which two are 4xSDR at one end and 1xSDR at the other."""
    imported = import_fabric([real_data / "ib" / "opensm_doc_chassis.ibnetdiscover.txt"])
    fabric = imported
    assert (fabric.num_nodes, fabric.num_nics, fabric.num_ports // 2) == (6, 5, 7)
    assert [finding.id for finding in imported.findings] == ["cabling.speed-mismatch"] * 2
    rates, ports = np.unique(fabric.port_rate_bps_P, return_counts=True)
    assert dict(zip(rates.tolist(), (ports // 2).tolist(), strict=True)) == {2_500_000_000: 2, 10_000_000_000: 5}
    trunks = [fabric.link_label(port) for port in range(14) if fabric.link_label(port).startswith("ISR9024 Voltaire")]
    assert [label for label in trunks if "SW-6IB4" in label] == [
        "ISR9024 Voltaire:10 -> SW-6IB4 Voltaire:1",
        "ISR9024 Voltaire:6 -> SW-6IB4 Voltaire:3",
    ]
