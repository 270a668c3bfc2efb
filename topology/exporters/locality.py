"""Locality of hosts as a tree: which hosts meet below which tier of switches.

Hosts are of one domain of level k where switches of tiers 1 to k join them. With rails a host has several ToRs, so that
a domain of level 1 is a ToR set, and not a switch. Levels that join nothing more than the one below are left out.
Without tiers a switch's tier is its distance from the nearest host.

Left out: fabrics whose domains overlap (a host on ToRs of two sets) become one domain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Hosts that meet below one tier; of level 1 with `hosts`, above with `children`."""

    name: str
    level: int
    hosts: tuple[str, ...]
    children: tuple["Domain", ...] = ()

    def descendants(self) -> "list[Domain]":
        """Return the domain and all below it, the highest first."""
        below = [domain for child in self.children for domain in child.descendants()]
        return [self, *below]


@dataclass(frozen=True, kw_only=True)
class Locality:
    """The domains of a fabric's hosts; several roots where nothing joins them."""

    roots: tuple[Domain, ...]
    num_levels: int

    def domains(self) -> list[Domain]:
        """Return all domains by level, the highest first, in the fabric's order within a level."""
        every = [domain for root in self.roots for domain in root.descendants()]
        return sorted(every, key=lambda domain: -domain.level)


def locality_of(fabric: Fabric) -> Locality:
    """Return the tree of a fabric's hosts; raises InputError where a host has no link."""
    tier_N = _switch_tiers(fabric)
    hosts = np.nonzero(fabric.node_kind_N == NodeKind.HOST)[0].tolist()
    alone = [fabric.node_name_N[host] for host in hosts if not (fabric.port_node_P == host).any()]
    if alone or not hosts:
        found = f"hosts without a link: {', '.join(alone[:5])}" if alone else "no hosts"
        raise InputError(Mistake(where=f"fabric {fabric.name!r}", found=found, allowed="linked hosts"))
    domains: list[Domain] = []
    level = 0
    for tier in sorted(set(tier_N[tier_N > 0].tolist())):
        groups = _joined(fabric, tier_N, hosts, tier)
        if level and len(groups) == len(domains):
            continue
        level += 1
        domains = [_domain(fabric, tier_N, group, tier, level, place, domains) for place, group in enumerate(groups)]
    return Locality(roots=tuple(domains), num_levels=level)


def _switch_tiers(fabric: Fabric) -> IntArray:
    """Return the tier of each switch, 0 for hosts."""
    is_switch_N = fabric.node_kind_N == NodeKind.SWITCH
    if (fabric.node_tier_N[is_switch_N] != UNKNOWN_TIER).all():
        return np.where(is_switch_N, fabric.node_tier_N, 0)
    graph: nx.Graph[int] = nx.Graph(
        zip(fabric.port_node_P.tolist(), fabric.port_node_P[fabric.port_peer_P].tolist(), strict=True)
    )
    hosts = set(np.nonzero(~is_switch_N)[0].tolist()) & set(graph)
    distance = nx.multi_source_dijkstra_path_length(graph, hosts) if hosts else {}
    return np.array([distance.get(node, 0) for node in range(fabric.num_nodes)], np.int64)


def _joined(fabric: Fabric, tier_N: IntArray, hosts: Sequence[int], tier: int) -> list[list[int]]:
    """Return the hosts that switches up to a tier join, in the fabric's order."""
    end_P, peer_P = fabric.port_node_P, fabric.port_node_P[fabric.port_peer_P]
    is_below_P = (tier_N[end_P] <= tier) & (tier_N[peer_P] <= tier)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(hosts)
    graph.add_edges_from(zip(end_P[is_below_P].tolist(), peer_P[is_below_P].tolist(), strict=True))
    is_host = set(hosts)
    groups = [sorted(is_host & component) for component in nx.connected_components(graph)]
    return sorted(filter(None, groups))


def _domain(
    fabric: Fabric,
    tier_N: IntArray,
    group: Sequence[int],
    tier: int,
    level: int,
    place: int,
    below: Sequence[Domain],
) -> Domain:
    """Return a domain; a single switch gives it its name, else its level and number do."""
    names = tuple(fabric.node_name_N[host] for host in group)
    own = set(names)
    children = tuple(domain for domain in below if own.issuperset(domain.hosts))
    switches = _switches_above(fabric, tier_N, group) if level == 1 else set()
    name = fabric.node_name_N[next(iter(switches))] if len(switches) == 1 else f"level{level}-{place}"
    return Domain(name=_plain(name), level=level, hosts=names, children=children if level > 1 else ())


def _switches_above(fabric: Fabric, tier_N: IntArray, group: Sequence[int]) -> set[int]:
    is_theirs_P = np.isin(fabric.port_node_P, np.array(group))
    peers = fabric.port_node_P[fabric.port_peer_P[is_theirs_P]]
    return set(peers[tier_N[peers] > 0].tolist())


def _plain(name: str) -> str:
    """Return a name that Slurm and Kubernetes take: lower case letters, digits, hyphens."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-") or "domain"
