"""Paths after failures, with resilient groups, with roles by tier, and with structure prepared once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError, RouteError
from fabrictune.topology import path_tracing
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HASHES, HashSpec, TierHash
from fabrictune.topology.network import NO_PORT, QueuePairs
from fabrictune.topology.path_tracing import PathTracer
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import EqualCost, data_headers, route

RESILIENT = HashSpec(resilient_buckets=128)


@pytest.fixture(scope="module")
def queue_pairs() -> QueuePairs:
    """Return 2,000 queue pairs from the first ToR to the second."""
    return make_queue_pairs(np.arange(2000) % 8, 8 + np.arange(2000) % 8)


def fail(fabric: Fabric, *labels: str) -> np.ndarray:
    """Return the mask of these ports."""
    return np.array([fabric.port_label(port) in labels for port in range(fabric.num_ports)])


def uplinks(fabric: Fabric, queue_pairs: QueuePairs, spec: HashSpec, is_failed_P: np.ndarray | None) -> list[str]:
    """Return the port each queue pair leaves its ToR through."""
    port_Q = route(fabric, queue_pairs, spec, is_failed_P=is_failed_P).port_QDH[:, 0, 1]
    return [fabric.port_label(int(port)) for port in port_Q]


def test_a_modulo_group_moves_most_flows_when_a_member_fails(two_tors: Fabric, queue_pairs: QueuePairs) -> None:
    """From 8 to 7 ports h mod 8 and h mod 7 agree by chance alone, for one flow in 8; the failed port's move too."""
    before = uplinks(two_tors, queue_pairs, HashSpec(), None)
    after = uplinks(two_tors, queue_pairs, HashSpec(), fail(two_tors, "tor0:up3"))
    assert "tor0:up3" not in after
    moved = np.mean([one != other for one, other in zip(before, after, strict=True)])
    assert moved == pytest.approx(7 / 8, abs=0.03)


def test_a_resilient_group_moves_only_the_failed_members_flows(two_tors: Fabric, queue_pairs: QueuePairs) -> None:
    """128 buckets, 16 a member; those of the failed one are dealt over the seven that are left."""
    before = uplinks(two_tors, queue_pairs, RESILIENT, None)
    after = uplinks(two_tors, queue_pairs, RESILIENT, fail(two_tors, "tor0:up3"))
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(moved) == before.count("tor0:up3") > 100
    assert set(moved) == {f"tor0:up{number}" for number in range(8) if number != 3}


def test_a_failure_further_on_moves_flows_of_the_switch_before(two_tors: Fabric, queue_pairs: QueuePairs) -> None:
    """An aggregation switch that has lost its link to the second ToR is no nearer to it, so no choice either."""
    after = uplinks(two_tors, queue_pairs, RESILIENT, fail(two_tors, "tor1:up3"))
    before = uplinks(two_tors, queue_pairs, RESILIENT, None)
    assert "tor0:up3" not in after
    assert all(old == new for old, new in zip(before, after, strict=True) if old != "tor0:up3")


def test_resilient_shares_are_whole_buckets(two_tors: Fabric, queue_pairs: QueuePairs) -> None:
    """Twelve buckets over eight members: four members have two each, and twice the flows of the others."""
    shares = uplinks(two_tors, queue_pairs, HashSpec(resilient_buckets=12), None)
    counts = np.array([shares.count(f"tor0:up{number}") for number in range(8)])
    assert counts[:4].mean() == pytest.approx(2 * counts[4:].mean(), rel=0.15)


def test_flows_may_be_walked_some_at_a_time(
    two_tors: Fabric, queue_pairs: QueuePairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million flows towards one attachment took 300 MB at each hop."""
    at_once = route(two_tors, queue_pairs, HashSpec()).port_QDH
    monkeypatch.setattr(path_tracing, "MAX_WALKED_FLOWS", 7)
    assert np.array_equal(route(two_tors, queue_pairs, HashSpec()).port_QDH, at_once)


def test_what_a_failure_cuts_off_is_named(two_tors: Fabric) -> None:
    """A NIC whose only link is down has no path."""
    with pytest.raises(RouteError, match="no path from host0:nic0 to host9:nic0"):
        route(two_tors, make_queue_pairs([0], [9]), HashSpec(), is_failed_P=fail(two_tors, "host9:nic0"))


def test_a_nic_with_two_ports_uses_the_one_that_is_left() -> None:
    """Dual-ToR: either ToR leads on, until one of the links fails."""
    draft = FabricDraft("dual")
    hosts = [draft.add_host(f"host{number}") for number in range(2)]
    tors = [draft.add_switch(f"tor{number}", tier=1) for number in range(2)]
    for nic, host in enumerate(hosts):
        draft.add_link((host, "p0"), (tors[0], f"down{nic}"), rate_bps=100, delay_ps=5)
        draft.add_link((host, "p1"), (tors[1], f"down{nic}"), rate_bps=100, delay_ps=5, nic=nic)
    fabric, queue_pairs = draft.finish(), make_queue_pairs(np.zeros(50), np.ones(50))
    for failed, used in (
        ((), {"host0:p0", "host0:p1"}),
        (("host0:p1",), {"host0:p0"}),
        (("tor0:down1",), {"host0:p1"}),
    ):
        path_QH = route(fabric, queue_pairs, HashSpec(), is_failed_P=fail(fabric, *failed)).port_QDH[:, 0]
        assert {fabric.port_label(int(port)) for port in path_QH[:, 0]} == used


@given(st.sampled_from(sorted(HASHES)), st.integers(0, 3), st.booleans())
def test_prepared_routes_are_those_of_routing(small_clos: Fabric, function: str, seed: int, has_role: bool) -> None:
    """What is worked out once holds for every function, seed and role."""
    generator = np.random.Generator(np.random.Philox(3))
    source = generator.integers(0, small_clos.num_nics, 300)
    queue_pairs = make_queue_pairs(source, (source + generator.integers(1, 128, 300)) % small_clos.num_nics)
    roles = (TierHash(tier=2, function="crc16", seed=9, rotation=3),) if has_role else ()
    spec = HashSpec(function=function, seed=seed, tiers=roles)
    routes = PathTracer(small_clos, queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
    path_QH = routes.paths(data_headers(small_clos, queue_pairs), spec)
    expected_QH = route(small_clos, queue_pairs, spec).port_QDH[:, 0]
    assert (path_QH == expected_QH[:, : path_QH.shape[1]]).all()
    assert (expected_QH[:, path_QH.shape[1] :] == NO_PORT).all()


def test_a_role_changes_the_choices_of_its_tier_alone(fat_tree: Fabric) -> None:
    """With another seed at the aggregation switches, paths agree up to there."""
    queue_pairs = make_queue_pairs(np.zeros(200), np.full(200, 15))
    plain, other = HashSpec(seed=4), HashSpec(seed=4, tiers=(TierHash(tier=2, seed=5),))
    one_QH, two_QH = (route(fat_tree, queue_pairs, spec).port_QDH[:, 0] for spec in (plain, other))
    assert (one_QH[:, :2] == two_QH[:, :2]).all()
    assert 0.3 < (one_QH[:, 2] != two_QH[:, 2]).mean() < 0.7


def test_a_role_of_a_tier_that_is_not_there_is_refused(small_clos: Fabric) -> None:
    """A setting without effect is a mistake: two tiers have no cores."""
    spec = HashSpec(tiers=(TierHash(tier=1, rotation=1), TierHash(tier=3, rotation=1)))
    with pytest.raises(InputError) as raised:
        route(small_clos, make_queue_pairs([0], [1]), spec)
    assert str(raised.value) == ("tiers[1].tier: tier 3, which no node of the fabric has\n  allowed: 0, 1, 2")


def test_the_destination_queue_pair_spreads_flows_of_one_source_port(fat_tree: Fabric) -> None:
    """E-ECMP: where all flows have one source port, only the queue pair's number tells them apart."""
    queue_pairs = make_queue_pairs(np.zeros(200), np.full(200, 15))
    pinned = replace(queue_pairs, source_port_Q=np.full(200, 49152))
    five_tuple = HashSpec()
    e_ecmp = HashSpec(fields=(*five_tuple.fields, "destination_qp"))
    num_paths = [len(np.unique(route(fat_tree, pinned, spec).port_QDH[:, 0], axis=0)) for spec in (five_tuple, e_ecmp)]
    assert num_paths == [1, 4]


def test_equal_cost_ports_are_those_that_paths_take(fat_tree: Fabric) -> None:
    """Of host 0's edge switch towards another pod both uplinks, towards its neighbour one port down."""
    edge = int(fat_tree.port_node_P[fat_tree.port_peer_P[fat_tree.port_nic_P == 0][0]])
    ports = EqualCost(fat_tree).ports
    assert [fat_tree.port_name_P[port] for port in ports(edge, 15)] == ["up0", "up1"]
    assert [fat_tree.port_name_P[port] for port in ports(edge, 1)] == ["down1"]
