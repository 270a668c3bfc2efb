"""Next hops in bulk: those that routing takes, each set stored once, with weights."""

import numpy as np
import pytest

from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.failures import failed_ports
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.next_hops import NO_SWITCH, next_hops
from fabrictune.topology.routing import EqualCost

GBPS = 10**9


def fat_tree(radix: int = 4) -> Fabric:
    """Return a fat tree; of radix 4 it has 8 edge, 8 aggregation and 4 core switches."""
    return build_fat_tree(FatTreeSpec(radix=radix, link_rate_bps=100 * GBPS, cable_mm=2_000))


def dual_tor() -> Fabric:
    """Return hosts whose NICs have a port to each of two ToRs."""
    return build_clos(
        ClosSpec(
            num_hosts=4,
            hosts_per_tor_set=2,
            nics_per_host=1,
            ports_per_nic=2,
            tiers=2,
            nic_rate_bps=100 * GBPS,
            uplink_rate_bps=100 * GBPS,
            downlink_split=1,
            uplinks_per_tor=2,
        )
    )


@pytest.mark.parametrize("fabric", [fat_tree(), dual_tor()], ids=["fat-tree", "dual-tor"])
def test_every_switch_has_the_ports_among_which_routing_hashes(fabric: Fabric) -> None:
    """`EqualCost` answers one question at a time; the table must give the same ports in the same order."""
    hops, equal_cost = next_hops(fabric), EqualCost(fabric)
    for node in np.nonzero(fabric.node_kind_N == NodeKind.SWITCH)[0]:
        for nic in range(fabric.num_nics):
            exits = [int(p) for p in hops.exit_C2[nic] if p != NO_PORT and fabric.port_node_P[p] == node]
            assert (hops.towards(int(node), nic) or exits) == equal_cost.ports(int(node), nic)


def test_a_set_is_stored_once() -> None:
    """Radix 4: an edge switch has one set (both uplinks), an aggregation three, a core four, and one is empty.

    Edge: towards 7 others always both uplinks. Aggregation: two downlinks, or both uplinks. Core: a pod each.
    """
    hops = next_hops(fat_tree())
    assert len(hops.offset_K1) - 1 == 1 + 8 * 1 + 8 * 3 + 4 * 4


def test_a_host_is_no_switch() -> None:
    """The engine delivers where the number is missing."""
    fabric = fat_tree()
    hops = next_hops(fabric)
    assert ((hops.switch_N == NO_SWITCH) == (fabric.node_kind_N == NodeKind.HOST)).all()


def test_a_failed_link_is_no_choice() -> None:
    """With one of two uplinks down, the other is all that an edge switch has."""
    fabric = fat_tree()
    uplink = next(port for port in range(fabric.num_ports) if fabric.port_label(port) == "tor0:up0")
    node, far_nic = int(fabric.port_node_P[uplink]), fabric.num_nics - 1
    healthy = next_hops(fabric).towards(node, far_nic)
    left = next_hops(fabric, is_failed_P=failed_ports(fabric, ["tor0:up0"])).towards(node, far_nic)
    assert uplink in healthy
    assert left == [port for port in healthy if port != uplink]


def test_weights_follow_the_rates_or_the_links_that_are_left() -> None:
    """With one of agg0-0's two uplinks down, tor0 counts it for one link and agg0-1 for two; by rate they are equal."""
    fabric = fat_tree()
    is_failed_P = failed_ports(fabric, ["agg0-0:up0"])
    switch = next(node for node in range(fabric.num_nodes) if fabric.node_name_N[node] == "tor0")
    for weights, expected in (("links", [1, 2]), ("rate", [1, 1]), ("equal", [1, 1])):
        hops = next_hops(fabric, weights=weights, is_failed_P=is_failed_P)  # type: ignore[arg-type]
        number = hops.set_AS[hops.attachment_C[fabric.num_nics - 1], hops.switch_N[switch]]
        assert hops.weight_X[hops.offset_K1[number] : hops.offset_K1[number + 1]].tolist() == expected
