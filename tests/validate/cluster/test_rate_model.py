"""Rates that flows of a round should get, by hand."""

from pathlib import Path

import pytest

from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers import import_fabric
from fabrictune.validate.cluster.nics import Nic, NicList, find_nics
from fabrictune.validate.cluster.rate_model import RateModel
from fabrictune.validate.cluster.rounds import plan_rounds

PAYLOAD = (1500 - 52) / (1500 + 38)
GBPS = 1e9
COLUMNS = "Side A Device,Side A Role,Side A Name,Side B Device,Side B Role,Side B Name,Speed,Rail"


def machine(number: int) -> dict[str, object]:
    """Return what a node with one interface says."""
    interface = {"name": "eth0", "ipv4": f"10.0.0.{number}", "mtu": 1500, "speed_bps": 10**10}
    return {"interfaces": [interface], "reached_at": []}


@pytest.fixture
def two_leaves(tmp_path: Path) -> Fabric:
    """Four hosts of 10 Gbit/s on two leaves, which two spines join by 10 Gbit/s each."""
    rows = [f"host{n},server,eth0,leaf{n // 2},leaf,Ethernet{n},10 Gbps,0" for n in range(4)]
    rows += [f"leaf{leaf},leaf,up{spine},spine{spine},spine,down{leaf},10 Gbps," for leaf in (0, 1) for spine in (0, 1)]
    (tmp_path / "plan.csv").write_text("\n".join((COLUMNS, *rows)) + "\n")
    return import_fabric([tmp_path / "plan.csv"])


def nics_of(fabric: Fabric | None, num_nodes: int = 4) -> NicList:
    """Return the NICs of hosts 0 to 3."""
    return find_nics({f"host{n}": machine(n) for n in range(num_nodes)}, fabric, ())


def test_two_flows_that_may_meet_on_a_spine_get_the_whole_rate_or_half_of_it(two_leaves: Fabric) -> None:
    """Both leave leaf0 by one of two uplinks: by the hash of half of all seeds by the same."""
    nics = nics_of(two_leaves).nics
    flows = [(nics["host0"][0], nics["host2"][0]), (nics["host1"][0], nics["host3"][0])]
    expected = RateModel(two_leaves, {}).expect(flows)
    whole = 10 * GBPS * PAYLOAD
    assert expected.flows[0].least_bps == pytest.approx(whole / 2)
    assert expected.flows[0].high_bps == pytest.approx(whole)
    assert (expected.total.low_bps, expected.total.high_bps) == pytest.approx((whole, 2 * whole))


def test_flows_within_a_leaf_meet_nobody(two_leaves: Fabric) -> None:
    """One link each: the whole rate under every seed."""
    nics = nics_of(two_leaves).nics
    expected = RateModel(two_leaves, {}).expect([(nics["host0"][0], nics["host1"][0])])
    assert expected.flows[0].least_bps == pytest.approx(10 * GBPS * PAYLOAD)


def test_a_host_that_carries_less_than_its_link_is_the_limit(two_leaves: Fabric) -> None:
    """2 Gbit/s over its loopback: no flow of it is expected to have more."""
    nics = nics_of(two_leaves).nics
    model = RateModel(two_leaves, {"host1": 2 * GBPS})
    assert model.expect([(nics["host0"][0], nics["host1"][0])]).flows[0].median_bps == pytest.approx(2 * GBPS)


def test_without_a_plan_rates_are_the_drivers_and_links_between_switches_no_limit() -> None:
    """Two flows into one NIC share it."""
    nics = nics_of(None).nics
    flows = [(nics["host0"][0], nics["host2"][0]), (nics["host1"][0], nics["host2"][0])]
    expected = RateModel(None, {}).expect(flows)
    assert [one.median_bps for one in expected.flows] == pytest.approx([5 * GBPS * PAYLOAD] * 2)


def test_rounds_have_every_ordered_pair_once_and_bisections_every_level(two_leaves: Fabric) -> None:
    """4 hosts: 4 flows alone, 2 across from each, 3 rounds of 4 flows, bisections by 1 and 2."""
    rounds = list(plan_rounds(nics_of(two_leaves), 0, 2))
    pairs = [flow for one in rounds if one.part.startswith("pairs") for flow in one.flows]
    assert len({(near.node, far.node) for near, far in pairs}) == len(pairs) == 12
    assert [one.part for one in rounds[12:]] == [
        *(f"pairs at distance {shift}" for shift in (1, 2, 3)),
        *("bisection by 1", "bisection by 2"),
    ]
    assert [one.part for one in plan_rounds(nics_of(two_leaves), 2, 0) if one.part.startswith("pairs")] == [
        "pairs at distance 1",
        "pairs at distance 3",
    ]


def test_a_planned_nic_without_an_interface_is_absent_and_a_node_without_a_plan_a_stranger(two_leaves: Fabric) -> None:
    """host1 has another interface and address; host9 is in no plan."""
    other = {"interfaces": [{"name": "eth7", "ipv4": "192.0.2.1", "mtu": 1500, "speed_bps": 0}], "reached_at": []}
    found = find_nics({"host0": machine(0), "host1": other, "host9": machine(9)}, two_leaves, ())
    assert found.absent == ("host1:eth0",)
    assert found.strangers == ("host9",)
    assert not list(plan_rounds(found, 0, 4)), "host0 alone has a NIC"


def test_without_a_plan_the_interface_that_a_node_is_reached_at_is_no_rail_if_there_are_others() -> None:
    """Management on eth0, rails on the others; a pattern names them instead."""
    interfaces = [
        {"name": name, "ipv4": f"10.0.{number}.1", "mtu": 9000, "speed_bps": 0}
        for number, name in enumerate(("eth0", "eth10", "eth2", "docker0"))
    ]
    node = {"interfaces": interfaces, "reached_at": ["10.0.0.1"]}
    assert [nic.interface for nic in find_nics({"a": node}, None, ()).nics["a"]] == ["eth2", "eth10"]
    assert [nic.interface for nic in find_nics({"a": node}, None, ("eth?",)).nics["a"]] == ["eth0", "eth2"]


def test_a_nics_payload_is_its_rate_less_headers() -> None:
    """9,000-byte frames: 8,948 of 9,038 bytes on the wire."""
    nic = Nic(node="a", interface="eth0", ipv4="10.0.0.1", rail=0, rate_bps=GBPS, mtu=9000)
    assert nic.payload_fraction == pytest.approx(8948 / 9038)
