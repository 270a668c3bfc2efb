"""Which traffic has a closed form, and which breaks one of its conditions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.ecmp import single_choice
from fabrictune.topology.ecmp.single_choice import find_single_choice
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec, TierHash
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.queue_pairs import make_queue_pairs


def across(num_flows: int) -> QueuePairs:
    """Return queue pairs that climb from the first ToR to the second, one a NIC at most."""
    return make_queue_pairs(np.arange(num_flows), 8 + np.arange(num_flows))


def test_small_flows_count_by_their_demand(two_tors: Fabric) -> None:
    """Two queue pairs a NIC ask for half each, so a link takes two of them: 8 on 8 double links."""
    pairs = make_queue_pairs(np.repeat(np.arange(4), 2), np.repeat(8 + np.arange(4), 2))
    choice = find_single_choice(two_tors, pairs, HashSpec())
    assert choice is not None
    assert (choice.num_flows, choice.num_links, choice.link_rate_bps / choice.demand_bps) == (8, 8, 2)
    assert choice.fixed_load_fraction == 1.0  # the NICs' own links are full


@pytest.mark.parametrize(
    "spec",
    [
        HashSpec(function="crc32"),
        HashSpec(resilient_buckets=64),
        HashSpec(tiers=(TierHash(tier=1, function="crc16"),)),
        HashSpec(tiers=(TierHash(tier=1, seed=5),)),
        HashSpec(fields=("source_port",)),
    ],
)
def test_only_ideal_hashes_have_a_closed_form(two_tors: Fabric, spec: HashSpec) -> None:
    """A CRC's choices hang together, buckets may be uneven, a role's seed is known, flows of one port go together."""
    assert find_single_choice(two_tors, across(8), spec) is None


@pytest.mark.parametrize(
    ("source", "destination"),
    [([0, 1, 8], [8, 9, 1]), ([0, 1], [8, 2]), ([0, 1], [8, 8]), ([0, 0, 1], [8, 9, 10])],
    ids=["two ToRs send", "one stays below its ToR", "a receiver of two", "unequal demands"],
)
def test_other_traffic_has_no_closed_form(two_tors: Fabric, source: list[int], destination: list[int]) -> None:
    """Each breaks one condition."""
    assert find_single_choice(two_tors, make_queue_pairs(source, destination), HashSpec()) is None


def test_a_slower_link_behind_the_choice_has_no_closed_form(two_tors: Fabric) -> None:
    """Then it, and not the link chosen, is what flows share."""
    second_tor = two_tors.node_name_N.index("tor1")
    next_node_P = two_tors.port_node_P[two_tors.port_peer_P]
    is_trunk_P = (two_tors.node_tier_N[two_tors.port_node_P] > 0) & (two_tors.node_tier_N[next_node_P] > 0)
    is_behind_P = is_trunk_P & ((two_tors.port_node_P == second_tor) | (next_node_P == second_tor))
    slower = replace(two_tors, port_rate_bps_P=two_tors.port_rate_bps_P // (1 + is_behind_P))
    assert find_single_choice(slower, across(8), HashSpec()) is None


def test_demands_that_differ_by_a_bit_a_second_differ(two_tors: Fabric) -> None:
    """The closed form is for equal flows."""
    (first,) = np.nonzero(two_tors.port_nic_P == 0)
    rate_bps_P = two_tors.port_rate_bps_P.copy()
    rate_bps_P[[first[0], two_tors.port_peer_P[first[0]]]] -= 1
    assert find_single_choice(replace(two_tors, port_rate_bps_P=rate_bps_P), across(8), HashSpec()) is None


def test_links_of_two_rates_have_no_closed_form(two_tors: Fabric) -> None:
    """One uplink of half the rate fills sooner than the others."""
    first_tor = two_tors.node_name_N.index("tor0")
    uplink = int(
        np.nonzero((two_tors.port_node_P == first_tor) & (two_tors.port_nic_P[two_tors.port_peer_P] < 0))[0][3]
    )
    rate_bps_P = two_tors.port_rate_bps_P.copy()
    rate_bps_P[[uplink, two_tors.port_peer_P[uplink]]] //= 2
    assert find_single_choice(replace(two_tors, port_rate_bps_P=rate_bps_P), across(8), HashSpec()) is None


def test_a_choice_of_two_links_is_one(small_clos: Fabric) -> None:
    """Three hosts' first NICs climb by two uplinks, each of two NICs' rate."""
    choice = find_single_choice(small_clos, make_queue_pairs([0, 8, 16], [32, 40, 48]), HashSpec())
    assert choice is not None
    assert (choice.num_flows, choice.num_links, choice.link_rate_bps / choice.demand_bps) == (3, 2, 2)


def test_a_load_that_all_hashes_meet_may_reach_the_limit(two_tors: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    """The NICs' own links are full, which is 1."""
    monkeypatch.setattr(single_choice, "FULL", 1.0)
    assert find_single_choice(two_tors, across(8), HashSpec()) is not None
    monkeypatch.setattr(single_choice, "FULL", 1 - 1e-9)
    assert find_single_choice(two_tors, across(8), HashSpec()) is None


def test_another_nic_of_two_ports_does_not_matter() -> None:
    """Two hosts of one port below two ToRs with two uplinks; the last host has a NIC with a port to either ToR."""
    draft = FabricDraft("two ports at the end")
    tors = [draft.add_switch(f"tor{number}", tier=1) for number in range(2)]
    tops = [draft.add_switch(f"agg{number}", tier=2) for number in range(2)]
    hosts = [draft.add_host(f"host{number}") for number in range(3)]
    for host, port, tor, nic in ((0, "nic0", 0, None), (1, "nic0", 1, None), (2, "p0", 0, None), (2, "p1", 1, 2)):
        ends = (hosts[host], port), (tors[tor], f"down{host}")
        draft.add_link(*ends, rate_bps=10**11, delay_ps=10_000, nic=nic)
    for tor, top in itertools.product(range(2), range(2)):
        ends = (tors[tor], f"up{top}"), (tops[top], f"down{tor}")
        draft.add_link(*ends, rate_bps=10**11, delay_ps=10_000)
    choice = find_single_choice(draft.finish(), make_queue_pairs([0], [1]), HashSpec())
    assert choice is not None
    assert choice.num_links == 2


def test_the_closed_form_is_for_up_to_so_many_flows(two_tors: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time grows with the square of them."""
    monkeypatch.setattr(single_choice, "MAX_FLOWS", 8)
    assert find_single_choice(two_tors, across(8), HashSpec()) is not None
    monkeypatch.setattr(single_choice, "MAX_FLOWS", 7)
    assert find_single_choice(two_tors, across(8), HashSpec()) is None
    assert find_single_choice(two_tors, across(0), HashSpec()) is None
    assert find_single_choice(two_tors, across(1), HashSpec()) is not None


def test_a_nic_of_two_ports_makes_a_choice_of_its_own() -> None:
    """Whichever NIC it is, the first one included."""
    pair_of_hosts = HpnSpec(num_hosts=4, hosts_per_tor_set=2, tiers=2, uplinks_per_tor=4, uplinks_per_aggregation=None)
    fabric = build_clos(pair_of_hosts)
    for nic in (0, 1):
        assert find_single_choice(fabric, make_queue_pairs([nic], [16 + nic]), HashSpec()) is None
