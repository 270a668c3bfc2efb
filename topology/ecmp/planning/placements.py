"""Rank-to-host placement: MegaScale's way first, then swaps of hosts, none of which makes it worse.

What random hashing costs grows with the traffic that climbs, so a placement is judged by the bits a second that cross
links between switches, times how many such links: 0 under one ToR, 2 within a pod, 4 across pods. No hash and no seed
enters. The search starts from the better of the present placement and the contiguous one, which fills one ToR set
before the next; then every host in turn is swapped with the host, used by the job or free, where the most traffic comes
down, as long as any swap brings any down. Whole hosts are swapped, so what stays inside a host stays there.

Source: MegaScale (NSDI'24), section 3.6: data-intensive nodes are scheduled under the same ToRs.

Shapes: R ranks, E pairs of ranks, S ToR sets, B hosts that may be used, K neighbours of a host in the traffic.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.seeds import stream
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.placement import Placement, place, tor_sets
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import route

FREE = -1


@dataclass(frozen=True, kw_only=True)
class RankTraffic:
    """E pairs of ranks, and how much the one sends to the other."""

    source_E: IntArray
    destination_E: IntArray
    demand_bps_E: FloatArray


@dataclass(frozen=True, kw_only=True)
class PlacementPlan:
    """Proposed placement of the ranks, and the course of the search."""

    placement: Placement
    start: str  # the placement the swaps began from: "present" or "contiguous"
    climbing_bps: tuple[float, ...]  # of the present placement, of the start, then after each pass; never rises


def plan_placement(
    placement: Placement,
    fabric: Fabric,
    traffic: RankTraffic,
    *,
    gpus_per_host: int = 8,
    contiguous: Placement | None = None,
    seed: int = 0,
    max_passes: int = 10,
    progress: Progress | None = None,
) -> PlacementPlan:
    """Return a placement of which no more traffic climbs than of the present one.

    `contiguous` is that of the ranks where they are not one job's, which `gpus_per_host` and the layout would place.
    """
    grounds = _Grounds(fabric)
    contiguous = contiguous or place(placement.layout, fabric, "contiguous", gpus_per_host=gpus_per_host)
    present_bps, contiguous_bps = (grounds.climbing_bps(candidate, traffic) for candidate in (placement, contiguous))
    start = "contiguous" if contiguous_bps < present_bps else "present"
    best = contiguous if start == "contiguous" else placement
    climbing_bps = [present_bps, min(present_bps, contiguous_bps)]
    for pass_ in range(max_passes):
        at_B = _swap_hosts(grounds, best, traffic, stream(seed, "placement", pass_))
        best = _moved(best, fabric, grounds, at_B)
        climbing_bps.append(grounds.climbing_bps(best, traffic))
        if progress:
            progress((pass_ + 1) / max_passes)
        if climbing_bps[-1] >= climbing_bps[-2]:
            break
    return PlacementPlan(placement=best, start=start, climbing_bps=tuple(climbing_bps))


class _Grounds:
    """The hosts of a fabric by ToR set, and how many links between switches lie between any two sets."""

    def __init__(self, fabric: Fabric) -> None:
        sets = tor_sets(fabric)
        self.host_B = np.array([host for hosts in sets for host in hosts], np.int64)
        self.set_B = np.repeat(np.arange(len(sets)), [len(hosts) for hosts in sets])
        self.num_nics_B = np.bincount(fabric.nic_host_C, minlength=fabric.num_nodes)[self.host_B]
        self.links_SS = _links_between(fabric, [hosts[0] for hosts in sets])
        self.place_N = np.full(fabric.num_nodes, FREE)
        self.place_N[self.host_B] = np.arange(len(self.host_B))

    def climbing_bps(self, placement: Placement, traffic: RankTraffic) -> float:
        """Return the demand over links between switches, summed over those links."""
        set_R = self.set_B[self.place_N[placement.host_R]]
        links_E = self.links_SS[set_R[traffic.source_E], set_R[traffic.destination_E]]
        return float((links_E * traffic.demand_bps_E).sum())


def _links_between(fabric: Fabric, host_S: list[int]) -> IntArray:
    """Return the number of links between switches on the way from one host to another, shape (S, S)."""
    num_sets = len(host_S)
    nic_S = np.array([np.argmax(fabric.nic_host_C == host) for host in host_S], np.int64)
    source, destination = np.nonzero(~np.eye(num_sets, dtype=bool))
    epoch = route(fabric, make_queue_pairs(nic_S[source], nic_S[destination]), HashSpec())
    links_SS = np.zeros((num_sets, num_sets), np.int64)
    links_SS[source, destination] = (epoch.port_QDH[:, 0] != NO_PORT).sum(axis=1) - 2  # without both NICs' links
    return links_SS


@dataclass(frozen=True, kw_only=True)
class _Neighbours:
    """Peers of each place and the demand between them, both directions together."""

    place_BK: IntArray  # padded with the place itself, to which nothing is sent
    demand_bps_BK: FloatArray


def _neighbours(grounds: _Grounds, placement: Placement, traffic: RankTraffic) -> _Neighbours:
    place_R = grounds.place_N[placement.host_R]
    ends = place_R[traffic.source_E], place_R[traffic.destination_E]
    num_places = len(grounds.host_B)
    key = np.concatenate([ends[0] * num_places + ends[1], ends[1] * num_places + ends[0]])
    key_X, pair = np.unique(key, return_inverse=True)
    demand_bps_X = np.bincount(pair, np.tile(traffic.demand_bps_E, 2), minlength=len(key_X))
    from_X, to_X = np.divmod(key_X, num_places)
    column_X = np.arange(len(key_X)) - np.searchsorted(from_X, from_X)
    shape = (num_places, 1 + int(column_X.max(initial=0)))
    place_BK = np.broadcast_to(np.arange(num_places)[:, None], shape).copy()
    demand_bps_BK = np.zeros(shape)
    place_BK[from_X, column_X] = to_X
    demand_bps_BK[from_X, column_X] = np.where(from_X == to_X, 0.0, demand_bps_X)
    return _Neighbours(place_BK=place_BK, demand_bps_BK=demand_bps_BK)


def _swap_hosts(grounds: _Grounds, placement: Placement, traffic: RankTraffic, order: np.random.Generator) -> IntArray:
    """Return the new place of what was at each place, after one pass of swaps, shape (B,)."""
    neighbours = _neighbours(grounds, placement, traffic)
    at_B = np.arange(len(grounds.host_B))  # what was at place b is now at place at_B[b]
    busy = np.nonzero(neighbours.demand_bps_BK.any(axis=1))[0]
    for unit in order.permutation(busy).tolist():
        gain_B = _gains(grounds, neighbours, at_B, unit)
        best = int(gain_B.argmax())
        if gain_B[best] > 0:
            at_B[unit], at_B[best] = at_B[best], at_B[unit]
    return at_B


def _gains(grounds: _Grounds, neighbours: _Neighbours, at_B: IntArray, unit: int) -> FloatArray:
    """Return by how much less traffic climbs if `unit` and each other unit change places, shape (B,)."""
    set_B = grounds.set_B[at_B]  # of each unit
    demand_bps_BK, links_SS = neighbours.demand_bps_BK, grounds.links_SS
    beside_BK = set_B[neighbours.place_BK]
    here = set_B[unit]
    cost_B = (links_SS[set_B[:, None], beside_BK] * demand_bps_BK).sum(axis=1)
    cost_here_B = (links_SS[here, beside_BK] * demand_bps_BK).sum(axis=1)
    cost_there_B = (links_SS[set_B[:, None], beside_BK[unit]] * demand_bps_BK[unit]).sum(axis=1)
    gain_B: FloatArray = cost_B + cost_B[unit] - cost_here_B - cost_there_B
    partner_K = neighbours.place_BK[unit]
    # Each of two that exchange with one another was counted as if the other stayed behind.
    np.subtract.at(gain_B, partner_K, 2 * links_SS[here, set_B[partner_K]] * demand_bps_BK[unit])
    gain_B[grounds.num_nics_B != grounds.num_nics_B[unit]] = 0.0
    return gain_B


def _moved(placement: Placement, fabric: Fabric, grounds: _Grounds, at_B: IntArray) -> Placement:
    """Return the placement after what stood at place b has gone to place `at_B[b]`, to the same NIC of that host."""
    host_R = grounds.host_B[at_B[grounds.place_N[placement.host_R]]]
    order_C = np.argsort(fabric.nic_host_C, kind="stable")
    first_N = np.searchsorted(fabric.nic_host_C[order_C], np.arange(fabric.num_nodes))
    index_C = np.empty_like(order_C)  # of a NIC in its host
    index_C[order_C] = np.arange(len(order_C)) - first_N[fabric.nic_host_C[order_C]]
    nic_R = order_C[first_N[host_R] + index_C[placement.nic_R]]
    return Placement(layout=placement.layout, host_R=host_R, gpu_R=placement.gpu_R, nic_R=nic_R)
