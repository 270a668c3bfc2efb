"""Differences between two versions of a fabric: nodes, links, rates, delays and rails.

Nodes and ports are known by their names, so neither their order nor addresses count. A link that was removed
and one that was added at the same port are one recabling, reported at that port; two cables that changed places are
reported once each. Rates and delays that a fabric's notes call assumed are not compared; where some links of it have
an assumed rate, none with this rate is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.checks import CheckReport, join_reports, run_checks
from fabrictune.foundation.finding_rules.fabric import (
    DELAY_CHANGED,
    LINK_ADDED,
    LINK_RECABLED,
    LINK_REMOVED,
    NODE_ADDED,
    NODE_CHANGED,
    NODE_REMOVED,
    RAIL_CHANGED,
    RATE_CHANGED,
)
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.records import Confidence, Finding, Severity
from fabrictune.foundation.units import format_duration, format_rate
from fabrictune.topology.assumed_links import assumed_delays_ps, assumed_rates_bps
from fabrictune.topology.fabric import NO_GROUP, NO_NIC, NO_RAIL, UNKNOWN_TIER, Fabric, NodeKind

ABSENT = "absent"


@dataclass(frozen=True, kw_only=True)
class _Link:
    """A link by the labels of its ports, `ends`, of which the one nearer to the hosts comes first."""

    ends: tuple[str, str]
    rate_bps: int
    delays_ps: tuple[int, int]  # of the first end's direction, and of the other's
    has_assumed_rate: bool
    has_assumed_delay: bool

    def __str__(self) -> str:
        return f"{self.ends[0]} - {self.ends[1]}"

    @property
    def rate(self) -> str:
        """Its rate in words."""
        return format_rate(self.rate_bps) + (" (assumed)" if self.has_assumed_rate else "")


LinksByEnds = Mapping[frozenset[str], _Link]


def compare_fabrics(before: Fabric, after: Fabric) -> CheckReport:
    """Return a finding for each change, by name: nodes, then links, then rails. What was before is `expected`.

    Lost capacity is an error, what moved a warning, everything else for information.
    """
    links_before, links_after = _links(before), _links(after)
    changes = (*_compare_cabling(links_before, links_after), *_compare_speeds(links_before, links_after))
    nodes = f"{before.num_nodes:,} nodes before, {after.num_nodes:,} after"
    links = f"{len(links_before):,} links before, {len(links_after):,} after"
    nics = f"{before.num_nics:,} NICs before, {after.num_nics:,} after"
    return join_reports(
        run_checks((NODE_REMOVED.id, NODE_ADDED.id, NODE_CHANGED.id), nodes, _compare_nodes(before, after)),
        run_checks(
            (LINK_REMOVED.id, LINK_RECABLED.id, LINK_ADDED.id, RATE_CHANGED.id, DELAY_CHANGED.id), links, changes
        ),
        run_checks((RAIL_CHANGED.id,), nics, _compare_rails(before, after)),
    )


def not_compared(before: Fabric, after: Fabric) -> Iterator[str]:
    """Yield how many links stayed of which a rate, or a delay, is assumed and was not compared."""
    links_before, links_after = _links(before), _links(after)
    pairs = [(link, links_after[key]) for key, link in links_before.items() if key in links_after]
    num_rates = sum(old.has_assumed_rate != new.has_assumed_rate for old, new in pairs)
    num_delays = sum(old.has_assumed_delay != new.has_assumed_delay for old, new in pairs)
    if num_rates:
        yield f"links whose rate is assumed in one of the two, not compared: {num_rates}"
    if num_delays:
        yield f"links whose cable length is assumed in one of the two, not compared: {num_delays}"


def _compare_nodes(before: Fabric, after: Fabric) -> Iterator[Finding]:
    first, second = _nodes(before), _nodes(after)
    for name in sorted(first.keys() | second.keys()):
        if name not in second:
            yield _change(NODE_REMOVED, f"node {name}", first[name][0], ABSENT)
        elif name not in first:
            yield _change(NODE_ADDED, f"node {name}", ABSENT, second[name][0])
        else:
            for old, new in zip(first[name], second[name], strict=True):
                if old != new:
                    yield _change(NODE_CHANGED, f"node {name}", old, new)


def _compare_cabling(before: LinksByEnds, after: LinksByEnds) -> Iterator[Finding]:
    """Yield links removed, recabled and added."""
    added = {key: link for key, link in after.items() if key not in before}
    added_at = {end: key for key in added for end in key}
    for key, link in before.items():
        if key in after:
            continue
        stays = next((end for end in link.ends if added_at.get(end) in added), None)
        if stays is None:
            yield _change(LINK_REMOVED, f"link {link}", link.rate, ABSENT)
        else:
            new = added.pop(added_at[stays])
            yield _change(LINK_RECABLED, stays, _far_end(link, stays), _far_end(new, stays))
    for link in added.values():
        yield _change(LINK_ADDED, f"link {link}", ABSENT, link.rate)


def _compare_speeds(before: LinksByEnds, after: LinksByEnds) -> Iterator[Finding]:
    """Yield rates and delays that changed of links that stayed."""
    for key, old in before.items():
        new = after.get(key, old)
        if old.rate_bps != new.rate_bps and not (old.has_assumed_rate or new.has_assumed_rate):
            severity = None if new.rate_bps < old.rate_bps else Severity.INFO
            yield _change(RATE_CHANGED, f"link {old}", old.rate, new.rate, severity)
        is_known = not (old.has_assumed_delay or new.has_assumed_delay)
        if is_known and sorted(old.delays_ps) != sorted(new.delays_ps):
            delays = _delays(old), _delays(new)
            yield _change(DELAY_CHANGED, f"link {old}", *delays)


def _compare_rails(before: Fabric, after: Fabric) -> Iterator[Finding]:
    first, second = _rails(before), _rails(after)
    for port in sorted(first.keys() & second.keys()):
        if first[port] != second[port]:
            yield _change(RAIL_CHANGED, f"NIC {port}", first[port], second[port])


def _nodes(fabric: Fabric) -> dict[str, tuple[str, str, str]]:
    """Return kind, tier and group of each node, in words."""
    rows = zip(fabric.node_kind_N.tolist(), fabric.node_tier_N.tolist(), fabric.node_group_N.tolist(), strict=True)
    return {
        name: (
            NodeKind(kind).name.lower(),
            "unknown tier" if tier == UNKNOWN_TIER else f"tier {tier}",
            "no group" if group == NO_GROUP else f"group {group}",
        )
        for name, (kind, tier, group) in zip(fabric.node_name_N, rows, strict=True)
    }


def _links(fabric: Fabric) -> LinksByEnds:
    """Return the links by their ports' labels, in the order of the labels."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    tier_P = np.where(tier_P == UNKNOWN_TIER, tier_P.max(initial=0) + 1, tier_P)
    rates_bps, delays_ps = assumed_rates_bps(fabric.notes), assumed_delays_ps(fabric.notes)
    links = []
    for port in np.nonzero(fabric.port_peer_P > np.arange(fabric.num_ports))[0].tolist():
        both = [port, int(fabric.port_peer_P[port])]
        low, high = sorted(both, key=lambda end: (int(tier_P[end]), fabric.port_label(end)))
        rate_bps = int(fabric.port_rate_bps_P[low])
        both_ps = int(fabric.port_delay_ps_P[low]), int(fabric.port_delay_ps_P[high])
        links.append(
            _Link(
                ends=(fabric.port_label(low), fabric.port_label(high)),
                rate_bps=rate_bps,
                delays_ps=both_ps,
                has_assumed_rate=rate_bps in rates_bps,
                has_assumed_delay=delays_ps.issuperset(both_ps),
            )
        )
    return {frozenset(link.ends): link for link in sorted(links, key=lambda link: link.ends)}


def _rails(fabric: Fabric) -> dict[str, str]:
    """Return the rail of each host's port, in words, by its label."""
    rail_of = ["no rail" if rail == NO_RAIL else f"rail {rail}" for rail in fabric.nic_rail_C.tolist()]
    ports = np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist()
    return {fabric.port_label(port): rail_of[int(fabric.port_nic_P[port])] for port in ports}


def _far_end(link: _Link, near: str) -> str:
    (far,) = set(link.ends) - {near}
    return f"to {far} at {link.rate}"


def _delays(link: _Link) -> str:
    return " and ".join(format_duration(delay) for delay in sorted(set(link.delays_ps)))


def _change(rule: Rule, entity: str, before: str, after: str, severity: Severity | None = None) -> Finding:
    return rule.finding(
        entity=entity, expected=before, actual=after, severity=severity, confidence=Confidence.CONFIGURED
    )
