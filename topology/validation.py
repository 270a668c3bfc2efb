"""Plausibility rules of a fabric: majority checks beyond what the format requires.

A rule refuses what cannot be a network; a check finds what can be one, but was hardly meant. No input
says what was meant, so a check compares like with like: nodes of one tier, links between the same two tiers, hosts that
share their ToRs. What more than half of them have is expected, and a finding says how many that are. Where there is no
majority nothing is said; where a check lacks what it needs, that is a finding too.

Shapes: N nodes, P ports.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.finding_rules.fabric import (
    ISOLATED_NODE,
    ODD_LEVELS,
    PARTITION,
    TIERLESS_SWITCHES,
    UNEQUAL_RATE,
    UNEQUAL_UPLINKS,
)
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.units import format_rate
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric
from fabrictune.topology.rail_cabling import find_miscabled_rails

MAX_SHOWN = 20  # findings of one check that are shown one by one
MAX_NAMES = 5  # of nodes in one line

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True)
class FabricRule:
    """One expectation of a fabric; `find` yields what breaks it, in the order of nodes or ports."""

    statement: str
    find: Callable[[Fabric], Iterator[Finding]]


def validate_fabric(fabric: Fabric) -> tuple[Finding, ...]:
    """Return what all checks find, at most MAX_SHOWN of a check one by one and the rest as a number."""
    return tuple(finding for check in CHECKS for finding in _shown(fabric, check))


def _shown(fabric: Fabric, check: FabricRule) -> Iterator[Finding]:
    findings = check.find(fabric)
    last = None
    for last in islice(findings, MAX_SHOWN):
        yield last
    num_more = sum(1 for _ in findings)
    if last is not None and num_more:
        actual = f"{num_more} more findings like it"
        yield replace(last, entity=f"fabric {fabric.name}", expected=check.statement, actual=actual, evidence=())


def _find_isolated(fabric: Fabric) -> Iterator[Finding]:
    num_ports_N = np.bincount(fabric.port_node_P, minlength=fabric.num_nodes)
    for node in np.nonzero(num_ports_N == 0)[0].tolist():
        yield ISOLATED_NODE.finding(
            entity=fabric.node_name_N[node],
            expected="at least one link",
            actual="no link",
            confidence=Confidence.CONFIGURED,
        )


def _find_partitions(fabric: Fabric) -> Iterator[Finding]:
    """Find what no links join to the largest part; single nodes are another check's."""
    nodes_of: dict[int, list[int]] = defaultdict(list)
    for node, part in enumerate(_parts(fabric).tolist()):
        nodes_of[part].append(node)
    largest = max(nodes_of.values(), key=len)
    for nodes in nodes_of.values():
        if nodes is not largest and len(nodes) > 1:
            yield PARTITION.finding(
                entity=fabric.node_name_N[nodes[0]],
                expected=f"a path to the other {fabric.num_nodes - len(nodes)} nodes",
                actual=f"no path to the rest of the fabric from {len(nodes)} nodes: {_names(fabric, nodes)}",
                confidence=Confidence.CONFIGURED,
            )


def _parts(fabric: Fabric) -> IntArray:
    """Return for each node the lowest node that it is joined to by any path."""
    part_N = np.arange(fabric.num_nodes)
    peer_node_P = fabric.port_node_P[fabric.port_peer_P]
    while True:
        lower_N = part_N.copy()
        np.minimum.at(lower_N, fabric.port_node_P, part_N[peer_node_P])
        lower_N = lower_N[lower_N]  # jumps, so that a long chain takes few rounds
        if np.array_equal(lower_N, part_N):
            return part_N
        part_N = lower_N


def _find_unknown_tiers(fabric: Fabric) -> Iterator[Finding]:
    num_ports_N = np.bincount(fabric.port_node_P, minlength=fabric.num_nodes)
    nodes = np.nonzero((fabric.node_tier_N == UNKNOWN_TIER) & (num_ports_N > 0))[0].tolist()
    if nodes:
        yield TIERLESS_SWITCHES.finding(
            entity=f"fabric {fabric.name}",
            expected="a tier for every switch",
            actual=(
                f"{len(nodes)} {'switch has' if len(nodes) == 1 else 'switches have'} no tier, so uplink checks are "
                f"skipped: {_names(fabric, nodes)}"
            ),
            confidence=Confidence.CONFIGURED,
        )


def _find_odd_levels(fabric: Fabric) -> Iterator[Finding]:
    """Find links that skip a tier, or stay in one, where most do not."""
    ports, tiers = _links(fabric)
    for row, _, is_usual, share in _odd_ones([high - low == 1 for low, high in tiers]):
        if is_usual:
            low, high = tiers[row]
            yield ODD_LEVELS.finding(
                entity=fabric.link_label(ports[row]),
                expected=f"neighbouring tiers, as for {share} links",
                actual=f"link between tier {low} and tier {high}",
                confidence=Confidence.CONFIGURED,
            )


def _find_unequal_rates(fabric: Fabric) -> Iterator[Finding]:
    """Find links at another rate than most between the same two tiers."""
    ports_between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for port, tiers in zip(*_links(fabric), strict=True):
        ports_between[tiers].append(port)
    for (low, high), ports in sorted(ports_between.items()):
        for row, rate_bps, usual_bps, share in _odd_ones(fabric.port_rate_bps_P[ports].tolist()):
            yield UNEQUAL_RATE.finding(
                entity=fabric.link_label(ports[row]),
                expected=f"{format_rate(usual_bps)}, as on {share} links between tier {low} and tier {high}",
                actual=format_rate(rate_bps),
                confidence=Confidence.CONFIGURED,
            )


def _find_unequal_uplinks(fabric: Fabric) -> Iterator[Finding]:
    """Find nodes with fewer, more, slower or otherwise spread uplinks than most of their tier."""
    uplinks_of = _uplinks(fabric)
    nodes_of: dict[int, list[int]] = defaultdict(list)  # by tier
    for node in uplinks_of:
        nodes_of[int(fabric.node_tier_N[node])].append(node)
    for tier, nodes in sorted(nodes_of.items()):
        profiles = [_profile(fabric, uplinks_of[node]) for node in nodes]
        for row, profile, usual, share in _odd_ones(profiles):
            above = fabric.port_node_P[fabric.port_peer_P[uplinks_of[nodes[row]]]].tolist()
            yield UNEQUAL_UPLINKS.finding(
                entity=fabric.node_name_N[nodes[row]],
                expected="equal uplinks within a tier",
                actual=f"{profile}; {share} {_noun(tier)} have {usual}",
                confidence=Confidence.CONFIGURED,
                evidence=(f"uplinks to: {_names(fabric, sorted(set(above)))}",),
            )


@dataclass(frozen=True)
class _Profile:
    """Uplinks of a node, comparable with another's."""

    num_links: int
    capacity_bps: int
    spread: tuple[int, ...]  # links to each node above, fewest first

    def __str__(self) -> str:
        spread = ", ".join(map(str, sorted(set(self.spread))))
        over = f" to {len(self.spread)} switches, {spread} each" if len(self.spread) > 1 else ""
        links = "uplink" if self.num_links == 1 else "uplinks"
        return f"{self.num_links} {links}{over} ({format_rate(self.capacity_bps)})"


def _profile(fabric: Fabric, ports: Sequence[int]) -> _Profile:
    spread = Counter(fabric.port_node_P[fabric.port_peer_P[ports]].tolist())
    return _Profile(len(ports), int(fabric.port_rate_bps_P[ports].sum()), tuple(sorted(spread.values())))


def _uplinks(fabric: Fabric) -> dict[int, list[int]]:
    """Return the ports that lead upwards from each node that has a link to a node of known tier."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    peer_tier_P = tier_P[fabric.port_peer_P]
    is_known_P = (tier_P != UNKNOWN_TIER) & (peer_tier_P != UNKNOWN_TIER)
    uplinks_of: dict[int, list[int]] = {node: [] for node in np.unique(fabric.port_node_P[is_known_P]).tolist()}
    for port in np.nonzero(is_known_P & (peer_tier_P > tier_P))[0].tolist():
        uplinks_of[int(fabric.port_node_P[port])].append(port)
    return uplinks_of


def _links(fabric: Fabric) -> tuple[list[int], list[tuple[int, int]]]:
    """Return one port of each link whose tiers are known, and the lower and the higher tier."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    peer_tier_P = tier_P[fabric.port_peer_P]
    is_first_P = fabric.port_peer_P > np.arange(fabric.num_ports)
    port_L = np.nonzero(is_first_P & (tier_P != UNKNOWN_TIER) & (peer_tier_P != UNKNOWN_TIER))[0]
    tiers_L2 = np.sort(np.stack([tier_P[port_L], peer_tier_P[port_L]], axis=1), axis=1)
    return port_L.tolist(), [(low, high) for low, high in tiers_L2.tolist()]


def _odd_ones(values: Sequence[Value]) -> Iterator[tuple[int, Value, Value, str]]:
    """Yield place and value of each that is not as more than half are, with what is usual and "31 of 32"."""
    usual, count = Counter(values).most_common(1)[0] if values else (None, 0)
    if usual is not None and 2 * count > len(values):
        for place, value in enumerate(values):
            if value != usual:
                yield place, value, usual, f"{count} of {len(values)}"


def _noun(tier: int) -> str:
    return f"switches of tier {tier}" if tier else "hosts"


def _names(fabric: Fabric, nodes: Sequence[int]) -> str:
    names = ", ".join(fabric.node_name_N[node] for node in nodes[:MAX_NAMES])
    return f"{names} and {len(nodes) - MAX_NAMES} more" if len(nodes) > MAX_NAMES else names


CHECKS: tuple[FabricRule, ...] = (
    FabricRule("every node has a link", _find_isolated),
    FabricRule("every node reaches every other", _find_partitions),
    FabricRule("every switch has a tier", _find_unknown_tiers),
    FabricRule("links join neighbouring tiers", _find_odd_levels),
    FabricRule("links between two tiers run at one rate", _find_unequal_rates),
    FabricRule("nodes of a tier have the same uplinks", _find_unequal_uplinks),
    FabricRule("the same rail of a ToR set's hosts is at the same ToRs", find_miscabled_rails),
)
