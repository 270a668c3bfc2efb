"""The CLOS builder: counts, wiring, port budgets, and a clear refusal of everything that does not fit."""

from collections import Counter
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import FabricError, InputError
from fabrictune.topology.builders.clos import ClosSpec, build_clos, plan_clos
from fabrictune.topology.fabric import Fabric

MEGASCALE = ClosSpec(num_hosts=1536, hosts_per_tor_set=64)


def links_between(fabric: Fabric, lower: int, upper: int) -> Counter[tuple[int, int]]:
    """Count the links between each node of one tier and each of another."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    rows = np.nonzero((tier_P == lower) & (tier_P[fabric.port_peer_P] == upper))[0]
    below, above = fabric.port_node_P[rows], fabric.port_node_P[fabric.port_peer_P[rows]]
    return Counter(zip(below.tolist(), above.tolist(), strict=True))


def test_demo_fabric_has_the_counts_of_its_shape(small_clos: Fabric) -> None:
    """16 hosts x 8 NICs, 4 sets x 8 ToRs, 4 NICs of 200G a ToR on 2 uplinks of 400G, so 2 aggregation switches."""
    assert np.bincount(small_clos.node_tier_N).tolist() == [16, 32, 2]
    assert (small_clos.num_nics, small_clos.num_ports) == (128, 2 * (128 + 64))
    assert set(links_between(small_clos, 1, 2).values()) == {1}
    assert len(links_between(small_clos, 1, 2)) == 64


def test_rail_r_goes_to_tor_r_of_the_set(small_clos: Fabric) -> None:
    """Host 5 is in set 1, so its NIC 3 hangs on the ToR tor1-3."""
    nic = 5 * 8 + 3
    port = int(np.nonzero(small_clos.port_nic_P == nic)[0][0])
    assert small_clos.link_label(port) == "host5:nic3 -> tor1-3:down0/1"
    assert (small_clos.nic_host_C[nic], small_clos.nic_rail_C[nic]) == (5, 3)


def test_split_downlinks_are_slower_than_uplinks(small_clos: Fabric) -> None:
    """A 400G ToR port carries two NICs of 200G; the uplinks stay at 400G."""
    tier_P = small_clos.node_tier_N[small_clos.port_node_P]
    assert set(small_clos.port_rate_bps_P[tier_P == 0].tolist()) == {200_000_000_000}
    assert set(small_clos.port_rate_bps_P[tier_P == 2].tolist()) == {400_000_000_000}


def test_cables_take_five_nanoseconds_a_metre(small_clos: Fabric) -> None:
    """3 m to the ToR are 15 ns, 30 m to the aggregation switch 150 ns."""
    assert sorted(set(small_clos.port_delay_ps_P.tolist())) == [15_000, 150_000]


def test_megascale_fabric_fills_every_port() -> None:
    """32 of 64 ports down and 32 up on every ToR and aggregation switch, 64 down on every core: full bisection."""
    fabric = build_clos(MEGASCALE)
    assert np.bincount(fabric.node_tier_N).tolist() == [1536, 192, 192, 96]
    num_ports_N = np.bincount(fabric.port_node_P)
    assert set(num_ports_N[fabric.node_tier_N == 1].tolist()) == {64 + 32}  # 64 NICs on 32 split ports
    assert set(num_ports_N[fabric.node_tier_N >= 2].tolist()) == {64}
    assert set(links_between(fabric, 1, 2).values()) == {1}


def test_every_pod_reaches_every_core() -> None:
    """192 aggregation switches of 6 pods on 96 cores: 10 or 11 of a pod's 32 have a link to a given core."""
    fabric = build_clos(MEGASCALE)
    links = links_between(fabric, 2, 3)
    pod_core = Counter((int(fabric.node_group_N[aggregation]), core) for aggregation, core in links)
    assert len(pod_core) == 6 * 96
    assert set(pod_core.values()) == {10, 11}


def test_aggregation_oversubscription_thins_the_core() -> None:
    """7:1 above 56 downlinks leaves 8 uplinks: 56 + 8 fill 64 ports."""
    spec = replace(MEGASCALE, num_hosts=896, tor_sets_per_pod=7, aggregation_oversubscription=7)
    plan = plan_clos(spec)
    assert (plan.num_pods, plan.uplinks_per_aggregation, plan.num_cores) == (2, 8, 8)


def test_without_rails_all_nics_of_a_host_share_their_tor() -> None:
    """One ToR a set: the 8 NICs of host 1 take its ports 8 to 15."""
    spec = ClosSpec(num_hosts=4, hosts_per_tor_set=2, tors_per_set=1, tiers=2, downlink_split=1)
    fabric = build_clos(spec)
    tors = fabric.port_node_P[fabric.port_peer_P[fabric.port_nic_P >= 0]]
    assert tors.reshape(4, 8).tolist() == [[4] * 8, [4] * 8, [5] * 8, [5] * 8]
    port = int(np.nonzero(fabric.port_nic_P == 15)[0][0])
    assert fabric.link_label(port) == "host1:nic7 -> tor0:down15"


@given(
    sets=st.integers(1, 6),
    hosts=st.integers(1, 6),
    nics=st.sampled_from([1, 2, 4]),
    ports=st.sampled_from([1, 2]),
    planes=st.sampled_from([1, 2, 4]),
    uplinks=st.integers(1, 6),
    tiers=st.sampled_from([2, 3]),
)
def test_whatever_is_built_is_balanced(
    sets: int, hosts: int, nics: int, ports: int, planes: int, uplinks: int, tiers: int
) -> None:
    """All switches of a tier have equally many ports, and ToRs reach the aggregation switches of their pod alike."""
    spec = ClosSpec(
        num_hosts=sets * hosts,
        hosts_per_tor_set=hosts,
        nics_per_host=nics,
        ports_per_nic=2 if ports == 2 else 1,
        planes=planes,
        uplinks_per_tor=uplinks,
        tiers=2 if tiers == 2 else 3,
        switch_radix=24,
    )
    try:
        fabric = build_clos(spec)
    except FabricError:
        return  # refused, which its own tests look at
    num_ports_N = np.bincount(fabric.port_node_P)
    assert np.bincount(fabric.port_nic_P[fabric.port_nic_P >= 0]).tolist() == [ports] * fabric.num_nics
    for tier in range(tiers + 1):
        assert len(set(num_ports_N[fabric.node_tier_N == tier].tolist())) == 1
    assert len(set(links_between(fabric, 1, 2).values())) == 1


@pytest.mark.parametrize("tiers", [2, 3])
def test_planes_meet_only_in_hosts(tiers: Any) -> None:
    """Without hosts, eight ToRs a set in four planes fall into four networks, each with two ToRs of every set."""
    fabric = build_clos(ClosSpec(num_hosts=16, hosts_per_tor_set=4, planes=4, tiers=tiers))
    graph: nx.Graph[int] = nx.Graph()
    ends = zip(fabric.port_node_P.tolist(), fabric.port_node_P[fabric.port_peer_P].tolist(), strict=True)
    graph.add_edges_from(ends)
    graph.remove_nodes_from(np.nonzero(fabric.node_tier_N == 0)[0].tolist())
    tors = [
        sorted(fabric.node_name_N[node] for node in plane if fabric.node_tier_N[node] == 1)
        for plane in nx.connected_components(graph)
    ]
    assert sorted(tors) == [
        [f"tor{tor_set}-{tor}" for tor_set in range(4) for tor in (plane, plane + 4)] for plane in range(4)
    ]


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "hosts that fill no set": (
        {"num_hosts": 1537},
        "hosts_per_tor_set: 64, with num_hosts 1537\n  allowed: a divisor of 1537",
    ),
    "rails that fit no ToRs": (
        {"tors_per_set": 3},
        "tors_per_set: 3, with links of a host 8\n  allowed: a divisor of 8",
    ),
    "planes that deal ToRs unevenly": (
        {"planes": 3},
        "planes: 3, with tors_per_set 8\n  allowed: a divisor of 8",
    ),
    "a NIC whose two links have one ToR": (
        {"ports_per_nic": 2, "tors_per_set": 1},
        "ports_per_nic: 2, with tors_per_set 1\n  allowed: a divisor of 1",
    ),
    "a tier's own radix": (
        {"aggregation_radix": 32, "tor_sets_per_pod": 4},
        "aggregation_radix: 32 ports down and 32 up on each aggregation switch\n  allowed: at most 32 ports\n"
        "  next: lower tor_sets_per_pod, or use larger switches",
    ),
    "a ratio that leaves parts of a link": (
        {"tor_sets_per_pod": 4, "aggregation_oversubscription": 7},
        "aggregation_oversubscription: 32 downlinks of an aggregation switch at 7:1\n"
        "  allowed: a whole number of uplinks\n  next: give uplinks_per_aggregation",
    ),
    "a port split too far": (
        {"downlink_split": 4},
        "downlink_split: 4 NIC links of 200 Gbps on one ToR port\n  allowed: together at most the port's 400 Gbps",
    ),
    "a ToR without enough ports": (
        {"downlink_split": 1},
        "switch_radix: 64 ports down and 32 up on each ToR\n  allowed: at most 64 ports\n"
        "  next: lower hosts_per_tor_set, or split the downlinks",
    ),
    "uplinks that are no whole number": (
        {"oversubscription": 5},
        "oversubscription: 64 NICs of 200 Gbps a ToR at 5:1\n  allowed: a whole number of 400 Gbps uplinks\n"
        "  next: give uplinks_per_tor",
    ),
    "aggregation switches that uplinks do not reach alike": (
        {"aggregations_per_pod": 24},
        "aggregations_per_pod: 24, with uplinks of a ToR 32\n  allowed: a divisor of 32",
    ),
    "two tiers that are too small": (
        {"tiers": 2},
        "switch_radix: 192 ports down and 0 up on each aggregation switch\n  allowed: at most 64 ports\n"
        "  next: use three tiers",
    ),
    "pods that are too large": (
        {"tor_sets_per_pod": 8},
        "switch_radix: 64 ports down and 64 up on each aggregation switch\n  allowed: at most 64 ports\n"
        "  next: lower tor_sets_per_pod, or use larger switches",
    ),
    "cores that take unequal numbers of links": (
        {"num_cores": 100},
        "num_cores: 6144 uplinks from 6 pods to 100 cores\n"
        "  allowed: a divisor of 6144 from 96 (port budget) to 1024 (every pod reaches every core)\n"
        "  next: change num_cores, the radix or the oversubscription",
    ),
    "more NICs than fit in memory": (
        {"num_hosts": 64 * 10_000},
        "num_hosts: 5120000 NICs\n  allowed: at most 262144 NICs",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    """The message names the setting, what it came to, what is possible and what to change."""
    change, message = REFUSALS[name]
    with pytest.raises(FabricError) as raised:
        build_clos(replace(MEGASCALE, **change))
    assert str(raised.value) == message


def test_counts_below_one_are_refused_together() -> None:
    """Two impossible counts and an impossible number of tiers are three mistakes of one error."""
    with pytest.raises(InputError) as raised:
        ClosSpec(num_hosts=0, hosts_per_tor_set=-1, tiers=4)  # type: ignore[arg-type]
    assert [mistake.where for mistake in raised.value.mistakes] == ["num_hosts", "hosts_per_tor_set", "tiers"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_cores": 2}, "num_cores: 2 with two tiers"),
        ({"core_radix": 64}, "core_radix: 64 with two tiers"),
        ({"uplinks_per_aggregation": 2}, "uplinks_per_aggregation: 2 with two tiers"),
        ({"tor_sets_per_pod": 2}, "tor_sets_per_pod: 2 of 4 ToR sets"),
        ({"aggregation_oversubscription": 2}, "aggregation_oversubscription: 2 with two tiers"),
        ({"oversubscription": 2, "uplinks_per_tor": 1}, "oversubscription: 2:1, and 1 uplinks_per_tor"),
        (
            {"tiers": 3, "aggregation_oversubscription": 2, "uplinks_per_aggregation": 1},
            "aggregation_oversubscription: 2:1, and 1 uplinks_per_aggregation",
        ),
    ],
)
def test_settings_without_effect_are_refused(change: dict[str, Any], message: str) -> None:
    """A setting that could change nothing is a misunderstanding, which a silent fabric would hide."""
    with pytest.raises(FabricError, match=message):
        build_clos(replace(ClosSpec(num_hosts=16, hosts_per_tor_set=4, tiers=2), **change))
