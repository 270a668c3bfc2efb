"""Builders of fabrics that exist: every count against the published one, or against the one that follows from it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import FabricError, RouteError
from fabrictune.topology.builders import BUILDERS
from fabrictune.topology.builders.barre import BarreSpec
from fabrictune.topology.builders.clos import ClosSpec, build_clos, plan_clos
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.builders.meta24k import Meta24kSpec
from fabrictune.topology.builders.rail_only import RailOnlySpec
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import route

GIGA = 10**9
# Every shape with few hosts, as tests and simulations want it.
SMALL: dict[str, dict[str, Any]] = {
    "megascale": {"num_hosts": 16, "hosts_per_tor_set": 4},
    "barre": {"num_hosts": 16, "hosts_per_tor_set": 4},
    "hpn": {"num_hosts": 16, "hosts_per_tor_set": 4, "uplinks_per_tor": 2, "uplinks_per_aggregation": 1},
    "meta24k": {"num_hosts": 32, "tor_sets_per_pod": 8, "uplinks_per_aggregation": 1},
    "rail_only": {"num_hosts": 16, "hosts_per_tor_set": 4},
}


@pytest.fixture(scope="module")
def hpn() -> Fabric:
    """Return a whole pod."""
    return build_clos(HpnSpec())


def neighbours(fabric: Fabric, name: str) -> set[str]:
    """Return the names of the nodes that a node is cabled to."""
    ports = np.nonzero(fabric.port_node_P == fabric.node_name_N.index(name))[0]
    return {fabric.node_name_N[node] for node in fabric.port_node_P[fabric.port_peer_P[ports]]}


def oversubscription(fabric: Fabric, tier: int) -> list[float]:
    """Return the ratios of capacity down to capacity up that occur among the switches of a tier."""
    node_P, peer_P = fabric.port_node_P, fabric.port_node_P[fabric.port_peer_P]
    is_down_P = fabric.node_tier_N[peer_P] < fabric.node_tier_N[node_P]
    down_N, up_N = (
        np.bincount(node_P[chosen], fabric.port_rate_bps_P[chosen], minlength=fabric.num_nodes)
        for chosen in (is_down_P, ~is_down_P)
    )
    is_tier_N = fabric.node_tier_N == tier
    return sorted(set((down_N[is_tier_N] / up_N[is_tier_N]).tolist()))


def ports_of_nic(fabric: Fabric, nic: int) -> list[int]:
    """Return a NIC's ports in port order."""
    return np.nonzero(fabric.port_nic_P == nic)[0].tolist()


def downlinks(fabric: Fabric, tier: int) -> set[tuple[int, int]]:
    """Return the (links down, links up) that occur among the switches of a tier."""
    node_P, peer_P = fabric.port_node_P, fabric.port_node_P[fabric.port_peer_P]
    is_down_P = fabric.node_tier_N[peer_P] < fabric.node_tier_N[node_P]
    down_N = np.bincount(node_P[is_down_P], minlength=fabric.num_nodes)
    up_N = np.bincount(node_P[~is_down_P], minlength=fabric.num_nodes)
    return set(zip(down_N[fabric.node_tier_N == tier].tolist(), up_N[fabric.node_tier_N == tier].tolist(), strict=True))


def test_megascale_has_its_gpus_and_fills_its_switches() -> None:
    """12,288 NICs of 200G; 32 x 2 down and 32 up at a ToR, 32 and 32 above it, 64 down at a core."""
    fabric = build_clos(MegascaleSpec())
    assert fabric.num_nics == 12_288
    assert np.bincount(fabric.node_tier_N).tolist() == [1536, 192, 192, 96]
    assert [downlinks(fabric, tier) for tier in (1, 2, 3)] == [{(64, 32)}, {(32, 32)}, {(64, 0)}]
    assert fabric.name == "megascale-1536x8"


def test_barre_is_megascale_at_twice_the_rate() -> None:
    """64 NICs of 400G a ToR, 32 uplinks of 800G: 25.6 Tbps down and as much up."""
    fabric = build_clos(BarreSpec())
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    assert np.bincount(fabric.node_tier_N).tolist() == [1536, 192, 192, 96]
    assert set(fabric.port_rate_bps_P[tier_P == 0].tolist()) == {400 * GIGA}
    assert set(fabric.port_rate_bps_P[tier_P == 3].tolist()) == {800 * GIGA}
    assert oversubscription(fabric, 1) == oversubscription(fabric, 2) == [1]


def test_hpn_pod_has_the_published_counts(hpn: Fabric) -> None:
    """15 segments of 128 hosts and 16 ToRs; 120 aggregation switches with 15 links down for each up."""
    assert hpn.num_nics == 15_360
    assert np.bincount(hpn.node_tier_N)[:3].tolist() == [1920, 15 * 16, 2 * 60]
    assert downlinks(hpn, 1) == {(128, 60)}
    assert downlinks(hpn, 2) == {(120, 8)}
    assert oversubscription(hpn, 1) == pytest.approx([1.067], abs=5e-4)
    assert oversubscription(hpn, 2) == [15]


def test_hpn_segment_holds_a_thousand_gpus(hpn: Fabric) -> None:
    """1,024 NICs behind the 16 ToRs of a segment."""
    hosts = np.nonzero((hpn.node_group_N == 0) & (hpn.node_tier_N == 0))[0]
    assert np.isin(hpn.nic_host_C, hosts).sum() == 1024


def test_hpn_nic_has_a_port_in_each_plane(hpn: Fabric) -> None:
    """NIC 3 of host 0 hangs on the ToRs 6 and 7, whose aggregation switches are none the same."""
    assert [hpn.link_label(port) for port in ports_of_nic(hpn, 3)] == [
        "host0:nic3p0 -> tor0-6:down0/0",
        "host0:nic3p1 -> tor0-7:down0/0",
    ]
    planes = [{name for name in neighbours(hpn, tor) if name.startswith("agg")} for tor in ("tor0-6", "tor0-7")]
    assert [len(plane) for plane in planes] == [60, 60]
    assert not planes[0] & planes[1]
    assert neighbours(hpn, "agg0-0") >= {f"tor{segment}-{2 * rail}" for segment in range(15) for rail in range(8)}


def test_hpn_paths_end_in_the_plane_they_began_in() -> None:
    """The destination's port follows from the source's: no hash is left that could make its two ports unequal."""
    fabric = build_clos(HpnSpec(**SMALL["hpn"]))
    queue_pairs = make_queue_pairs(np.arange(200) % 32, 32 + np.arange(200) % 96)
    path_QH = route(fabric, queue_pairs, HashSpec()).port_QDH[:, 0]
    planes = []
    for source, destination, path in zip(
        queue_pairs.source_nic_Q.tolist(), queue_pairs.destination_nic_Q.tolist(), path_QH, strict=True
    ):
        first, last = path[0], path[path != NO_PORT][-1]
        planes.append(ports_of_nic(fabric, source).index(first))
        assert ports_of_nic(fabric, destination).index(fabric.port_peer_P[last]) == planes[-1]
    assert set(planes) == {0, 1}


@pytest.mark.parametrize(
    ("change", "gpus_per_pod"),
    [
        ({"num_hosts": 8192, "planes": 1, "uplinks_per_aggregation": 64}, 4 * 1024),
        ({"num_hosts": 8192, "uplinks_per_aggregation": 64}, 8 * 1024),
        ({"num_hosts": 3840}, 15 * 1024),
        ({"num_hosts": 128 * 120, "planes": 16}, 122_880),
    ],
    ids=["dual-ToR", "dual-plane", "15:1", "rail-only"],
)
def test_each_step_of_hpns_design_enlarges_its_pod(change: dict[str, Any], gpus_per_pod: int) -> None:
    """Tables 2 and 4: 4K with two ToRs a NIC, 8K with two planes, 15K at 15:1, 122,880 with a plane for each ToR."""
    plan = plan_clos(replace(HpnSpec(), **change))
    assert plan.sets_per_pod * 128 * 8 == gpus_per_pod


def test_hpn_backup_servers_just_fit() -> None:
    """136 links of 200G on 68 ports and 60 up are 128 ports."""
    plan_clos(HpnSpec(num_hosts=15 * 136, hosts_per_tor_set=136))
    with pytest.raises(FabricError, match="switch_radix: 69 ports down and 60 up on each ToR"):
        plan_clos(HpnSpec(num_hosts=15 * 137, hosts_per_tor_set=137))


def test_meta24k_has_the_published_counts() -> None:
    """1,536 racks of 16 GPUs, pods of 3,072 at full bisection, and nearly 7:1 above them."""
    fabric = build_clos(Meta24kSpec())
    assert fabric.num_nics == 24_576
    assert (fabric.node_tier_N == 1).sum() == 8 * 192
    assert downlinks(fabric, 1) == {(16, 16)}
    assert downlinks(fabric, 2) == {(192, 27)}
    assert oversubscription(fabric, 1) == [1]
    assert oversubscription(fabric, 2) == pytest.approx([7], rel=0.02)
    pods = {int(group) for group in fabric.node_group_N[fabric.node_tier_N == 2]}
    assert len(pods) == 8
    assert fabric.num_nics // len(pods) == 3072


def test_rail_only_joins_nothing_across_rails() -> None:
    """NIC 0 of host 0 reaches NIC 0 of every host, and NIC 1 of none."""
    fabric = build_clos(RailOnlySpec(**SMALL["rail_only"]))
    route(fabric, make_queue_pairs(np.zeros(15), np.arange(1, 16) * 8), HashSpec())
    with pytest.raises(RouteError, match="no path from host0:nic0 to host1:nic1"):
        route(fabric, make_queue_pairs(0, 9), HashSpec())


def test_rail_only_saves_two_fifths_of_the_switches() -> None:
    """Eight rails of 64 + 32 switches; with all joined, 512 + 512 + 256."""
    rail_only = build_clos(RailOnlySpec())
    joined = plan_clos(ClosSpec(num_hosts=2048, hosts_per_tor_set=32, downlink_split=1, nic_rate_bps=400 * GIGA))
    assert rail_only.num_nics == 16_384
    assert (rail_only.node_tier_N > 0).sum() == 8 * (64 + 32)
    num_tors = joined.num_sets * joined.tors_per_set
    assert (num_tors, joined.num_pods * joined.aggregations_per_pod, joined.num_cores) == (512, 512, 256)


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_keep_the_shape(name: str) -> None:
    """Sixteen or so hosts build at once, and each NIC of rail 0 reaches every other one."""
    fabric = build_clos(BUILDERS[name].spec(**SMALL[name]))
    rail_0 = np.nonzero(fabric.nic_rail_C == 0)[0]
    assert fabric.num_nics <= 256
    pairs = [(source, destination) for source in rail_0 for destination in rail_0 if source != destination]
    path_QH = route(fabric, make_queue_pairs(*zip(*pairs, strict=True)), HashSpec()).port_QDH[:, 0]
    ends = fabric.port_nic_P[fabric.port_peer_P[[path[path != NO_PORT][-1] for path in path_QH]]]
    assert ends.tolist() == [destination for _, destination in pairs]
    assert (fabric.port_nic_P[path_QH[:, 0]] != NO_NIC).all()


def test_every_preset_is_listed() -> None:
    """A builder that no table names cannot be asked for."""
    children = {spec.__name__ for spec in ClosSpec.__subclasses__()}
    assert children <= {builder.spec.__name__ for builder in BUILDERS.values()}
