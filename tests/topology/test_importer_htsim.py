"""htsim's trees: a few counts for each tier, from which every link follows."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.htsim import load_htsim
from fabrictune.topology.validation import validate_fabric

FAT_TREE = """# the fat tree of 4-port switches
Nodes 16
Tiers 3
Podsize 4

Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 5000
"""


@pytest.fixture
def load(tmp_path: Path):
    """Read a topology given as text."""

    def load_text(text: str) -> Fabric:
        path = tmp_path / "tree.topo"
        path.write_text(text)
        return load_htsim([path])

    return load_text


def test_a_fat_tree_has_the_links_of_the_builder(load) -> None:
    """16 hosts, 8 ToRs, 8 aggregation switches, 4 cores: 48 links, and every core reaches each pod once."""
    fabric, built = load(FAT_TREE), build_fat_tree(FatTreeSpec(radix=4))
    assert np.bincount(fabric.node_tier_N).tolist() == np.bincount(built.node_tier_N).tolist() == [16, 8, 8, 4]
    assert fabric.num_ports == built.num_ports == 96
    assert validate_fabric(fabric).findings == ()
    cores = np.nonzero(fabric.node_tier_N == 3)[0]
    for core in cores:
        below = fabric.port_node_P[fabric.port_peer_P[fabric.port_node_P == core]]
        assert len(set(fabric.node_group_N[below].tolist())) == 4  # pods


def test_latencies_are_those_of_the_tier_above(load) -> None:
    """1 us to hosts and inside pods, 5 us to the cores."""
    fabric = load(FAT_TREE)
    delays, ports = np.unique(fabric.port_delay_ps_P, return_counts=True)
    assert dict(zip(delays.tolist(), ports.tolist(), strict=True)) == {1_000_000: 64, 5_000_000: 32}


def test_a_bundle_is_parallel_links_to_one_switch(load) -> None:
    """With two links a bundle, an aggregation switch has one core above it; the 16 links up need two cores of 8."""
    fabric = load(FAT_TREE.replace("Radix_Down 4", "Radix_Down 8\nBundle 2"))
    agg = fabric.node_name_N.index("agg0")
    above = [
        fabric.node_name_N[fabric.port_node_P[fabric.port_peer_P[port]]]
        for port in np.nonzero(fabric.port_node_P == agg)[0]
        if fabric.port_name_P[port].startswith("up")
    ]
    assert above == ["core0", "core0"]


def test_keys_without_meaning_here_are_noted(load, tmp_path: Path) -> None:
    """A fabric has no switch latency."""
    imported = load(FAT_TREE + "Switch_Latency_ns 300\n")
    assert imported.notes == (f"{tmp_path}/tree.topo:22: Switch_Latency_ns left out",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Nodes 16\n", "", "tree.topo: no nodes\n  allowed: nodes, tiers, podsize"),
        ("Nodes 16", "Nodes -2", "tree.topo:2: 'Nodes -2'\n  allowed: Nodes and a whole number from 1 to 10^9"),
        ("Nodes 16", "Nodes 16\nNodes 16", "tree.topo:3: Nodes a second time"),
        ("Nodes 16", "Nodes 17", "tree.topo: tier 0: Radix_Down: 17 links from below by 2\n  allowed: a whole number"),
        ("Nodes 16", "Nodes 999999999", "tree.topo: Nodes: 999999999\n  allowed: at most 262144"),
        ("Tiers 3", "Tiers 2", "tree.topo: Tiers: 2, and 3 blocks"),
        ("Tier 1", "Tier 2", "tree.topo:12: 'Tier 2'\n  allowed: tiers 0, 1 and perhaps 2, in this order"),
        ("Podsize 4", "Podsize 5", "tree.topo: Podsize: 16 nodes by 5"),
        ("Tier 0", "Tier 0\nOversubscribed 4", "Oversubscribed: 4, and 200 Gbps down, 200 Gbps up"),
        ("Radix_Up 2", "Radix_Sideways 2", "tree.topo: tier 0: Radix_Up: none\n  allowed: the links up of one switch"),
        ("Radix_Up 2", "Radix_Up 200000", "tree.topo: tier 0: Radix_Up: 1600000 links\n  allowed: at most 262144"),
    ],
)
def test_mistakes_have_their_place(load, old: str, new: str, message: str) -> None:
    """What is found, and what may stand there."""
    with pytest.raises(InputError) as raised:
        load(FAT_TREE.replace(old, new, 1))
    assert message in str(raised.value)
