"""When tiers hash alike: what the check says, and what the routing then does."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.conformance.topology.polarization import four_then
from fabrictune.foundation.records import Severity
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.ecmp import polarization
from fabrictune.topology.ecmp.polarization import (
    ChoosingTier,
    _drawn_headers,
    check_polarization,
    choosing_tiers,
    reachable_next_hops,
)
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.hashing import HASHES, FiveTuples, HashSpec, TierHash
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import route

K8, SIX = four_then(4), four_then(6)  # four uplinks a ToR, four or six an aggregation switch
ONE_SEED = HashSpec(seed_per_switch=False)
LINEAR = sorted(name for name, function in HASHES.items() if function.is_shifted_by_seed)


def used_by_routing(fabric: Fabric, spec: HashSpec) -> int:
    """Return the most uplinks that any aggregation switch uses for 4,000 flows from the first ToR to other pods."""
    half = fabric.num_nics // 2
    queue_pairs = make_queue_pairs(np.arange(4000) % 4, half + np.arange(4000) % half)
    port_Q = route(fabric, queue_pairs, spec).port_QDH[:, 0, 2]
    used = np.unique(port_Q)
    return int(np.bincount(fabric.port_node_P[used]).max())


@pytest.mark.parametrize(
    ("fabric", "spec", "expected"),
    [
        (K8, ONE_SEED, 1),
        (SIX, ONE_SEED, 3),
        (K8, HashSpec(), 4),
        (SIX, HashSpec(), 6),
        (K8, HashSpec(function="crc32"), 1),
        (K8, HashSpec(function="crc32", tiers=(TierHash(tier=2, rotation=8),)), 4),
        (K8, HashSpec(function="crc32", tiers=(TierHash(tier=2, function="crc16"),)), 4),
        (K8, HashSpec(function="crc32", tiers=(TierHash(tier=2, function="crc32_low"),)), 1),
        (K8, HashSpec(function="crc16_xmodem", tiers=(TierHash(tier=2, function="crc16_ccitt_false"),)), 1),
        (K8, HashSpec(seed_per_switch=False, tiers=(TierHash(tier=2, seed=1),)), 4),
        (K8, HashSpec(function="toeplitz"), 4),
    ],
    ids=lambda value: value.name if isinstance(value, Fabric) else None,
)
def test_the_check_says_what_the_routing_does(fabric: Fabric, spec: HashSpec, expected: int) -> None:
    """Next hops that flows of one ToR reach at one aggregation switch: by drawn headers, and on real paths."""
    below, above = choosing_tiers(fabric)
    assert reachable_next_hops(spec, below, above) == expected
    assert used_by_routing(fabric, spec) == expected
    assert bool(check_polarization(fabric, spec).findings) == (expected < above.num_choices)


@pytest.mark.parametrize("below", [2, 3, 4, 6, 8, 32])
@pytest.mark.parametrize("above", [2, 4, 6, 9, 32])
def test_one_seed_leaves_m2_over_gcd(below: int, above: int) -> None:
    """h mod m1 is fixed, so h mod m2 can take only values that agree with it modulo their common divisor."""
    tiers = [
        ChoosingTier(tier=tier, switch=tier, num_choices=choices)
        for tier, choices in enumerate((below, above), start=1)
    ]
    assert reachable_next_hops(ONE_SEED, *tiers) == above // math.gcd(below, above)


@pytest.mark.parametrize("function", LINEAR)
def test_seeds_alone_do_not_cure_a_linear_hash(function: str) -> None:
    """32 and 32 uplinks, a seed of its own for every switch: still one next hop of 32."""
    tiers = [ChoosingTier(tier=tier, switch=tier, num_choices=32) for tier in (1, 2)]
    assert reachable_next_hops(HashSpec(function=function), *tiers) == 1


def test_the_finding_names_tiers_and_cure() -> None:
    """An error, since all flows of a ToR uplink go to one core."""
    (finding,) = check_polarization(K8, HashSpec(function="crc32")).findings
    assert finding.severity == Severity.ERROR
    assert finding.entity == "tiers 1 and 2"
    assert finding.expected == "use of all 4"
    assert finding.actual == (
        "flows of a tier-1 uplink use 1 of 4 uplinks above; "
        "both tiers hash by crc32 with seeds that shift all hashes alike"
    )
    assert finding.next_step == ("give one of the tiers another function, or a rotation of its own (routing: tiers)")
    (finding,) = check_polarization(SIX, ONE_SEED).findings
    assert finding.severity == Severity.WARNING
    assert finding.actual == "flows of a tier-1 uplink use 3 of 6 uplinks above; both tiers hash by mixer with one seed"


def test_two_tiers_have_nothing_to_polarize(small_clos: Fabric) -> None:
    """Only one tier chooses."""
    assert [one.tier for one in choosing_tiers(small_clos)] == [1]
    assert check_polarization(small_clos, ONE_SEED).findings == ()


def test_a_switch_with_one_uplink_does_not_choose() -> None:
    """Of a tier, the switch with the fewest uplinks counts that has several: two, and not one or three."""
    draft = FabricDraft("uneven")
    aggregation = [draft.add_switch(f"agg{number}", tier=2) for number in range(3)]
    for number, num_uplinks in enumerate((3, 1, 2)):
        tor = draft.add_switch(f"tor{number}", tier=1)
        host = draft.add_host(f"host{number}")
        draft.add_link((host, "nic0"), (tor, "down"), rate_bps=10**11, delay_ps=10_000)
        for place in range(num_uplinks):
            ends = (tor, f"up{place}"), (aggregation[place], f"down{number}")
            draft.add_link(*ends, rate_bps=10**11, delay_ps=10_000)
    core = draft.add_switch("core", tier=3)  # a tier with one uplink each has no choice
    for number, switch in enumerate(aggregation):
        draft.add_link((switch, "up0"), (core, f"down{number}"), rate_bps=10**11, delay_ps=10_000)
    fabric = draft.finish()
    (only,) = choosing_tiers(fabric)
    assert (only.tier, fabric.node_name_N[only.switch], only.num_choices) == (1, "tor2", 2)


@pytest.mark.parametrize(("choices", "num_flows"), [(8, 64 * 8 * 8), (256, 2**22), (257, 2**22)])
def test_as_many_headers_are_drawn_as_a_miss_is_out_of_reach(
    choices: int, num_flows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 for each pair of a lower and an upper choice, and four million at most."""
    asked: list[int] = []

    def draw(num_flows: int) -> FiveTuples:
        asked.append(num_flows)
        return _drawn_headers(10)

    monkeypatch.setattr(polarization, "_drawn_headers", draw)
    reachable_next_hops(HashSpec(), *(ChoosingTier(tier=tier, switch=tier, num_choices=choices) for tier in (1, 2)))
    assert asked == [num_flows]


def test_drawn_headers_fill_their_fields() -> None:
    """32 bits of address, 16 of port, 24 of queue pair number, and no more."""
    flows = _drawn_headers(1000)
    for values_F, num_bits in (
        (flows.source_ipv4_F, 32),
        (flows.destination_ipv4_F, 32),
        (flows.source_port_F, 16),
        (flows.destination_qpn_F, 24),
    ):
        assert values_F is not None
        assert 2 ** (num_bits - 1) < values_F.max() < 2**num_bits
        assert 0 <= values_F.min() < 2 ** (num_bits - 1)


def test_a_fabric_without_tiers_is_not_judged() -> None:
    """Importers do not always know them, and hosts above a switch of unknown tier are no uplinks."""
    unknown_N = np.where(K8.node_tier_N > 0, UNKNOWN_TIER, 0)
    assert choosing_tiers(replace(K8, node_tier_N=unknown_N)) == []
    num_switches = int((K8.node_kind_N == NodeKind.SWITCH).sum())
    (check,) = check_polarization(replace(K8, node_tier_N=unknown_N), ONE_SEED).checks
    assert f"{num_switches} switches have no tier" in str(check)
