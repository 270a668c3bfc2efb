"""A public SONiC minigraph gives the switch that its authors drew."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.topology.importers import import_fabric

pytestmark = pytest.mark.real


def test_sonic_t1(real_data: Path) -> None:
    """A leaf with 16 ToRs and 16 spines, names in quotation marks, no Bandwidth: rates are the ports' 40 Gbps."""
    imported = import_fabric([real_data / "sonic" / "t1-sample-graph-mlnx.minigraph.xml"])
    fabric = imported
    assert (fabric.name, fabric.num_nodes, fabric.num_ports // 2) == ("arc-switch1026", 33, 32)
    assert np.bincount(fabric.node_tier_N).tolist() == [0, 16, 1, 16]
    assert set(fabric.port_rate_bps_P.tolist()) == {40_000_000_000}
    assert fabric.link_label(0) == "arc-switch1026:Ethernet0 -> ARISTA01T2:Ethernet1"
    assert imported.notes == ("links without a cable length, taken as 10 m: 32",)
