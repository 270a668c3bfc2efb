"""Plausibility rules of a fabric: majority checks beyond what the format requires.

A rule refuses what cannot be a network; a check finds what can be one, but was hardly meant. No input
says what was meant, so a check compares like with like: nodes of one tier, links between the same two tiers, hosts that
share their ToRs. What more than half of them have is expected, and a finding says how many that are. Where there is no
majority, and where it lacks what it needs, a check did not run.

Shapes: N nodes, P ports.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.fabric import (
    ISOLATED_NODE,
    ODD_LEVELS,
    PARTITION,
    RAIL_MISCABLED,
    TIERLESS_SWITCHES,
    UNEQUAL_RATE,
    UNEQUAL_UPLINKS,
)
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.units import format_fraction, format_rate
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.rail_cabling import find_miscabled_rails

MAX_NAMES = 5  # of nodes in one line
CATALOG_MAJORITY = ODD_LEVELS.threshold("majority").default

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class FabricRule:
    """One expectation of a fabric; `find` yields what breaks it, switches before hosts."""

    rule: Rule
    statement: str
    subject: Callable[[Fabric], str]
    find: Callable[["_Peers", float], Iterator[Finding]]  # by its threshold, 0 without one
    undecided: Callable[["_Peers", float], str] = lambda _, __: ""  # why it cannot tell, "" where it can
    threshold: str = ""

    def check(self, peers: "_Peers", rules: RuleSettings) -> CheckReport:
        """Return the check of a fabric; one that cannot tell and finds nothing did not run."""
        limit = rules.threshold(self.rule, self.threshold) if self.threshold else 0.0
        subject = self.subject(peers.fabric)
        report = run_check(self.rule.id, subject, self.find(peers, limit), expected=self.statement)
        reason = "" if report.findings else self.undecided(peers, limit)
        return skip_check(self.rule.id, subject, reason) if reason else report


def validate_fabric(fabric: Fabric, rules: RuleSettings = CATALOG_SETTINGS) -> CheckReport:
    """Return all checks of a fabric and all that they find."""
    peers = _Peers(fabric)
    return join_reports(*(check.check(peers, rules) for check in CHECKS))


class _Peers:
    """What is compared with one another in a fabric: links and nodes of one kind, each put together once."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric

    @cached_property
    def links(self) -> tuple[list[int], list[tuple[int, int]]]:
        """One port of each link whose tiers are known, and the lower and the higher tier."""
        return _links(self.fabric)

    @cached_property
    def ports_between(self) -> dict[tuple[int, int], list[int]]:
        """One port of each link by its two tiers, the upper tiers first."""
        ports: dict[tuple[int, int], list[int]] = defaultdict(list)
        for port, tiers in zip(*self.links, strict=True):
            ports[tiers].append(port)
        return dict(sorted(ports.items(), reverse=True))

    @cached_property
    def uplinks_of(self) -> dict[int, list[int]]:
        """The ports that lead upwards from each node that has a link to a node of known tier."""
        return _uplinks(self.fabric)

    @cached_property
    def profiles(self) -> dict[int, dict[int, "_Profile"]]:
        """The profile of each node by tier, the upper tiers first."""
        return _profiles(self.fabric, self.uplinks_of)


def _find_isolated(fabric: Fabric) -> Iterator[Finding]:
    num_ports_N = np.bincount(fabric.port_node_P, minlength=fabric.num_nodes)
    isolated = np.nonzero(num_ports_N == 0)[0].tolist()
    for node in sorted(isolated, key=lambda node: fabric.node_kind_N[node] == NodeKind.HOST):
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


def _find_odd_levels(peers: _Peers, majority: float) -> Iterator[Finding]:
    """Find links that skip a tier, or stay in one, where most do not."""
    ports, tiers = peers.links
    odd = _odd_ones([high - low == 1 for low, high in tiers], majority)
    for row, _, is_usual, share in sorted(odd, key=lambda one: tiers[one[0]], reverse=True):
        if is_usual:
            low, high = tiers[row]
            yield ODD_LEVELS.finding(
                entity=peers.fabric.link_label(ports[row]),
                expected=f"neighbouring tiers, as for {share} links",
                actual=f"link between tier {low} and tier {high}",
                confidence=Confidence.CONFIGURED,
            )


def _find_unequal_rates(peers: _Peers, majority: float) -> Iterator[Finding]:
    """Find links at another rate than most between the same two tiers, the upper tiers first."""
    fabric = peers.fabric
    for (low, high), ports in peers.ports_between.items():
        for row, rate_bps, usual_bps, share in _odd_ones(fabric.port_rate_bps_P[ports].tolist(), majority):
            yield UNEQUAL_RATE.finding(
                entity=fabric.link_label(ports[row]),
                expected=f"{format_rate(usual_bps)}, as on {share} links between tier {low} and tier {high}",
                actual=format_rate(rate_bps),
                confidence=Confidence.CONFIGURED,
            )


def _find_unequal_uplinks(peers: _Peers, majority: float) -> Iterator[Finding]:
    """Find nodes with other uplinks than most of their tier (number, rate, spread), the upper tiers first."""
    fabric = peers.fabric
    for tier, profile_of in peers.profiles.items():
        nodes = list(profile_of)
        for row, profile, usual, share in _odd_ones(list(profile_of.values()), majority):
            above = fabric.port_node_P[fabric.port_peer_P[peers.uplinks_of[nodes[row]]]].tolist()
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


def _profiles(fabric: Fabric, uplinks_of: Mapping[int, Sequence[int]]) -> dict[int, dict[int, _Profile]]:
    """Return the profile of each node by tier, the upper tiers first."""
    profile_of: dict[int, dict[int, _Profile]] = defaultdict(dict)
    for node in sorted(uplinks_of, key=lambda node: -fabric.node_tier_N[node]):
        profile_of[int(fabric.node_tier_N[node])][node] = _profile(fabric, uplinks_of[node])
    return profile_of


def _undecided_levels(peers: _Peers, majority: float) -> str:
    _, tiers = peers.links
    return _no_tiers(peers) or _no_majority({"all links": [high - low == 1 for low, high in tiers]}, majority)


def _undecided_rates(peers: _Peers, majority: float) -> str:
    rates = {
        f"links between tier {low} and tier {high}": peers.fabric.port_rate_bps_P[ports].tolist()
        for (low, high), ports in peers.ports_between.items()
    }
    return _no_tiers(peers) or _no_majority(rates, majority)


def _undecided_uplinks(peers: _Peers, majority: float) -> str:
    profiles = {_noun(tier): list(of.values()) for tier, of in peers.profiles.items()}
    return _no_tiers(peers) or _no_majority(profiles, majority)


def _no_tiers(peers: _Peers) -> str:
    return "" if peers.links[0] else "no link between nodes of known tiers"


def _no_majority(groups: Mapping[str, Sequence[Hashable]], majority: float) -> str:
    """Return which groups differ so that nobody can say which of them is right, "" for none."""
    without = [
        f"{len(values):,} {name}"
        for name, values in groups.items()
        if values and max(Counter(values).values()) <= majority * len(values)
    ]
    if not without:
        return ""
    share = "majority" if majority == CATALOG_MAJORITY else f"{format_fraction(majority)} majority"
    return f"no {share} among {', '.join(without)}"


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


def _odd_ones(values: Sequence[Value], majority: float) -> Iterator[tuple[int, Value, Value, str]]:
    """Yield place and value of each that is not as more than this share is, with what is usual and "31 of 32"."""
    usual, count = Counter(values).most_common(1)[0] if values else (None, 0)
    if usual is not None and count > majority * len(values):
        for place, value in enumerate(values):
            if value != usual:
                yield place, value, usual, f"{count} of {len(values)}"


def _noun(tier: int) -> str:
    return f"switches of tier {tier}" if tier else "hosts"


def _names(fabric: Fabric, nodes: Sequence[int]) -> str:
    names = ", ".join(fabric.node_name_N[node] for node in nodes[:MAX_NAMES])
    return f"{names} and {len(nodes) - MAX_NAMES} more" if len(nodes) > MAX_NAMES else names


def _num_nodes(fabric: Fabric) -> str:
    return f"{fabric.num_nodes:,} nodes"


def _num_links(fabric: Fabric) -> str:
    return f"{fabric.num_ports // 2:,} links"


CHECKS: tuple[FabricRule, ...] = (
    FabricRule(
        rule=ISOLATED_NODE,
        statement="a link at every node",
        subject=_num_nodes,
        find=lambda peers, _: _find_isolated(peers.fabric),
    ),
    FabricRule(
        rule=PARTITION,
        statement="a path from every node to every other",
        subject=_num_nodes,
        find=lambda peers, _: _find_partitions(peers.fabric),
    ),
    FabricRule(
        rule=TIERLESS_SWITCHES,
        statement="a tier for every switch",
        subject=_num_nodes,
        find=lambda peers, _: _find_unknown_tiers(peers.fabric),
    ),
    FabricRule(
        rule=ODD_LEVELS,
        statement="links between neighbouring tiers",
        subject=_num_links,
        find=_find_odd_levels,
        undecided=_undecided_levels,
        threshold="majority",
    ),
    FabricRule(
        rule=UNEQUAL_RATE,
        statement="one rate of the links between two tiers",
        subject=_num_links,
        find=_find_unequal_rates,
        undecided=_undecided_rates,
        threshold="majority",
    ),
    FabricRule(
        rule=UNEQUAL_UPLINKS,
        statement="equal uplinks within a tier",
        subject=_num_nodes,
        find=_find_unequal_uplinks,
        undecided=_undecided_uplinks,
        threshold="majority",
    ),
    FabricRule(
        rule=RAIL_MISCABLED,
        statement="each rail of a ToR set's hosts at the same ToRs",
        subject=lambda fabric: f"{fabric.num_nics:,} NICs",
        find=lambda peers, limit: find_miscabled_rails(peers.fabric, limit),
        threshold="shared_tors",
    ),
)
