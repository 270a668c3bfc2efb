"""Traffic whose collisions have a closed form: every flow makes one choice, and all choose among the same links.

Flows from one ToR to another through two tiers are like that. What follows the choice must add nothing: each port
behind a member is reached through that member alone and is no slower, and no port that all hashes load alike is
oversubscribed. Flows must differ in what is hashed, ask for equal amounts, and be hashed ideally.

Shapes: Q queue pairs, M members of the group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.topology.ecmp.balls_into_bins import MAX_FLOWS
from fabrictune.topology.ecmp.collisions import FULL, CollisionReport, find_collisions
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, QueuePairs
from fabrictune.topology.routing import EqualCost, data_headers, route
from fabrictune.topology.shortest_paths import SwitchGraph, by_attachment


@dataclass(frozen=True, kw_only=True)
class SingleChoice:
    """N flows that ask for equal amounts, each on one of M links."""

    num_flows: int
    num_links: int
    link_rate_bps: int
    demand_bps: float  # of each flow
    fixed_load_fraction: float  # of the port most loaded among those that every hash loads alike


def find_single_choice(fabric: Fabric, queue_pairs: QueuePairs, hash_spec: HashSpec) -> SingleChoice | None:
    """Return the one choice that all flows make, None where it is not so; raises RouteError."""
    if not _is_ideal(hash_spec) or not 1 <= len(queue_pairs) <= MAX_FLOWS:
        return None
    headers = data_headers(fabric, queue_pairs).choosing(hash_spec.fields)
    port_QH = route(fabric, queue_pairs, hash_spec).port_QDH[:, 0]
    report = find_collisions(fabric, queue_pairs, port_QH)
    if len(np.unique(np.stack(headers.words()), axis=1).T) < len(queue_pairs) or np.ptp(report.demand_bps_Q) > 0:
        return None
    ways = _Ways(fabric)
    members = ways.only_group(port_QH, queue_pairs.destination_nic_Q.tolist())
    rates_bps = set(fabric.port_rate_bps_P[list(members or ())].tolist())
    if members is None or len(rates_bps) > 1:
        return None
    (link_rate_bps,) = rates_bps
    behind = ways.ports_behind(members, queue_pairs.destination_nic_Q)
    if behind is None or (fabric.port_rate_bps_P[list(behind)] < link_rate_bps).any():
        return None
    fixed_load = _load_elsewhere(report, {*members, *behind})
    if fixed_load > FULL:
        return None
    return SingleChoice(
        num_flows=len(queue_pairs),
        num_links=len(members),
        link_rate_bps=link_rate_bps,
        demand_bps=float(report.demand_bps_Q[0]),
        fixed_load_fraction=fixed_load,
    )


def _is_ideal(hash_spec: HashSpec) -> bool:
    """Return whether all seeds are open, and choices under them independent."""
    functions = {hash_spec.function, *(role.function or hash_spec.function for role in hash_spec.tiers)}
    is_open = all(role.seed is None for role in hash_spec.tiers)
    return functions == {"mixer"} and is_open and hash_spec.resilient_buckets is None


def _load_elsewhere(report: CollisionReport, hashed_ports: set[int]) -> float:
    load_P = report.demand_bps_P / report.rate_bps_P
    return float(np.delete(load_P, list(hashed_ports)).max())


class _Ways:
    """The choices on the way of flows, each looked up once."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, self._equal_cost = fabric, EqualCost(fabric)
        self._ports: dict[tuple[int, int], tuple[int, ...]] = {}
        self._num_ports_C = np.bincount(fabric.port_nic_P[fabric.port_nic_P >= 0], minlength=fabric.num_nics)

    def only_group(self, port_QH: np.ndarray, destination_Q: Sequence[int]) -> tuple[int, ...] | None:
        """Return the group that every path chooses from exactly once, None where there is no such group."""
        common: tuple[int, ...] | None = None
        for path, destination in zip(port_QH.tolist(), destination_Q, strict=True):
            if self._num_ports_C[self._fabric.port_nic_P[path[0]]] > 1:
                return None
            groups = [
                group
                for port in path[1:]
                if port != NO_PORT and len(group := self._group(int(self._fabric.port_node_P[port]), destination)) > 1
            ]
            if len(groups) != 1 or common not in (None, groups[0]):
                return None
            common = groups[0]
        return common

    def ports_behind(self, members: Sequence[int], destination_Q: IntArray) -> set[int] | None:
        """Return the ports between members and last switches, None where one is behind two members."""
        member_of: dict[int, int] = {}
        destinations = [
            int(destination_Q[row[0]]) for row in by_attachment((SwitchGraph(self._fabric),), destination_Q)
        ]
        for member in members:
            for destination in destinations:
                if any(member_of.setdefault(port, member) != member for port in self._after(member, destination)):
                    return None
        return set(member_of)

    def _after(self, port: int, destination: int) -> Iterator[int]:
        """Yield the ports after one, without the last, which leads to the destination from wherever flows come."""
        node = self._next_node(port)
        (following, *_) = self._group(node, destination)
        while self._fabric.port_nic_P[self._fabric.port_peer_P[following]] != destination:
            yield following
            (following, *_) = self._group(self._next_node(following), destination)

    def _next_node(self, port: int) -> int:
        return int(self._fabric.port_node_P[self._fabric.port_peer_P[port]])

    def _group(self, node: int, destination: int) -> tuple[int, ...]:
        if (node, destination) not in self._ports:
            self._ports[node, destination] = tuple(self._equal_cost.ports(node, destination))
        return self._ports[node, destination]
