"""Polarization: a tier that hashes like the one below it uses only some of its next hops.

All flows of one ToR that arrive at one aggregation switch share their hash modulo the ToR's m1 uplinks. Where that
switch computes the same hash, modulo its own m2 uplinks it can take but m2 / gcd(m1, m2) values. Another seed cures
this only if it changes the hash as a whole: under a CRC or a folding it adds one and the same exclusive or to all
hashes, and where the low bits choose, the flows that were together stay together. Another function, another slice of
the bits (a rotation) or other fields do cure it; two CRCs of one polynomial, or a CRC and its lower half, are no other
functions.

The test takes the two hashes as they are: it draws many headers, sorts them by what the lower switch chooses, and
counts the next hops that each lot reaches at the upper one. One within reach is missed with a chance of exp(-64).

Source: the number theory is elementary; that seeds may not help follows from the linearity of CRCs (`hashing.crc`).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.paths import POLARIZED_TIERS
from fabrictune.foundation.records import Confidence, Finding, Severity
from fabrictune.foundation.seeds import stream
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.hashing import FiveTuples, HashSpec

DRAWS_A_PAIR = 64  # headers for each pair of a lower and an upper choice
MAX_DRAWS = 2**22


@dataclass(frozen=True, kw_only=True)
class ChoosingTier:
    """A tier whose switches choose among uplinks: one of them, and the fewest uplinks that any has."""

    tier: int
    switch: int  # node
    num_choices: int


def check_polarization(fabric: Fabric, hash_spec: HashSpec) -> CheckReport:
    """Return the check of neighbouring tiers: a finding for each two of which the upper cannot use all its uplinks."""
    is_unknown_N = (fabric.node_kind_N == NodeKind.SWITCH) & (fabric.node_tier_N == UNKNOWN_TIER)
    if is_unknown_N.any():
        return skip_check(
            POLARIZED_TIERS.id, "neighbouring tiers", f"{int(is_unknown_N.sum()):,} switches have no tier"
        )
    pairs = [(below, above) for below, above in pairwise(choosing_tiers(fabric)) if above.tier == below.tier + 1]
    reached = [reachable_next_hops(hash_spec, below, above) for below, above in pairs]
    return run_check(
        POLARIZED_TIERS.id,
        f"{len(pairs)} pairs of neighbouring tiers that choose among uplinks",
        [
            _finding(hash_spec, below, above, num_reached)
            for (below, above), num_reached in zip(pairs, reached, strict=True)
            if num_reached < above.num_choices
        ],
        expected="flows of a lower uplink use all uplinks of the switch above",
        actual="they do" if pairs else "one tier chooses at most",
    )


def choosing_tiers(fabric: Fabric) -> list[ChoosingTier]:
    """Return the tiers whose switches have several uplinks, from below; none where tiers are unknown."""
    next_node_P = fabric.port_node_P[fabric.port_peer_P]
    tier_P, next_tier_P = fabric.node_tier_N[fabric.port_node_P], fabric.node_tier_N[next_node_P]
    is_up_P = (tier_P > 0) & (next_tier_P == tier_P + 1)  # hosts have tier 0, switches of no known tier a lower one
    num_up_N = np.bincount(fabric.port_node_P[is_up_P], minlength=fabric.num_nodes)
    tiers = []
    for tier in np.unique(fabric.node_tier_N[num_up_N > 1]).tolist():
        switch_X = np.nonzero((fabric.node_tier_N == tier) & (num_up_N > 1))[0]
        fewest = int(switch_X[np.argmin(num_up_N[switch_X])])
        tiers.append(ChoosingTier(tier=tier, switch=fewest, num_choices=int(num_up_N[fewest])))
    return tiers


def reachable_next_hops(hash_spec: HashSpec, below: ChoosingTier, above: ChoosingTier) -> int:
    """Return how many uplinks of the upper switch the flows on one uplink of the lower can use, at the fewest."""
    num_pairs = below.num_choices * above.num_choices
    flows = _drawn_headers(min(MAX_DRAWS, DRAWS_A_PAIR * num_pairs))
    below_F, above_F = (_choices(hash_spec, flows, tier) for tier in (below, above))
    is_met = np.zeros((below.num_choices, above.num_choices), bool)
    is_met[below_F, above_F] = True
    return int(is_met.sum(axis=1)[is_met.any(axis=1)].min())


def _choices(hash_spec: HashSpec, flows: FiveTuples, at: ChoosingTier) -> IntArray:
    own = hash_spec.at_tier(at.tier)
    seed_F = np.full(len(flows), _seed(own, at))
    return own.choose_among(flows, seed_F, np.full(len(flows), at.num_choices))


def _seed(own: HashSpec, at: ChoosingTier) -> np.uint64:
    seed: np.uint64 = own.node_seeds(at.switch + 1)[at.switch]
    return seed


def _drawn_headers(num_flows: int) -> FiveTuples:
    generator = stream(0, "polarization")
    source_F, destination_F, port_F, qpn_F = (
        generator.integers(2**num_bits, size=num_flows) for num_bits in (32, 32, 16, 24)
    )
    return FiveTuples(
        source_ipv4_F=source_F, destination_ipv4_F=destination_F, source_port_F=port_F, destination_qpn_F=qpn_F
    )


def _finding(hash_spec: HashSpec, below: ChoosingTier, above: ChoosingTier, reached: int) -> Finding:
    specs = [hash_spec.at_tier(tier.tier) for tier in (below, above)]
    seeds = [_seed(spec, tier) for spec, tier in zip(specs, (below, above), strict=True)]
    functions = " and ".join(dict.fromkeys(str(spec.function) for spec in specs))
    seeding = "one seed" if seeds[0] == seeds[1] else "seeds that shift all hashes alike"
    return POLARIZED_TIERS.finding(
        severity=Severity.ERROR if reached == 1 else Severity.WARNING,
        entity=f"tiers {below.tier} and {above.tier}",
        expected=f"use of all {above.num_choices}",
        actual=(
            f"flows of a tier-{below.tier} uplink use {reached} of {above.num_choices} uplinks above; "
            f"both tiers hash by {functions} with {seeding}"
        ),
        confidence=Confidence.CONFIGURED,
        evidence=(f"{below.num_choices} uplinks at tier {below.tier}, {above.num_choices} at tier {above.tier}",),
    )
