"""Rails of a fabric as networks of their own: that no switch joins two, and how far they are alike.

The *plane* of a rail are the switches reached from its NICs other than through hosts. Two planes are alike if their
switches and ports, each in order, have the same links, rates, delays and hosts.

Shapes: T rails, N nodes, P ports, C NICs, Q queue pairs of a rail, D = 2 directions, H hops.
"""

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, RouteError
from fabrictune.topology.fabric import NO_NIC, Fabric, NodeKind
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, Network, QueuePairs
from fabrictune.topology.queue_pairs import join_queue_pairs
from fabrictune.topology.routing import build_network

WHERE = "fold"
NO_PLANE = -1


@dataclass(frozen=True, kw_only=True)
class ComparedRails:
    """The paths of all rails, by the rail, and how far they are alike."""

    network_T: tuple[Network, ...]
    are_paths_alike: bool  # up to the names of ports
    crowding_T: IntArray  # the most queue pairs that share a link between switches
    is_other_TP: BoolArray  # ports of other rails

    @property
    def most_crowded(self) -> int:
        """The first of the rails whose links between switches are shared by the most queue pairs."""
        return int(np.argmax(self.crowding_T))


def compare_rails(fabric: Fabric, queue_pairs: QueuePairs, nic_TC: IntArray, hash_spec: HashSpec) -> ComparedRails:
    """Return the rails of a fabric with the same queue pairs on each; raises RouteError where they are not alike.

    `queue_pairs` are those of the first rail, `nic_TC` the NIC of each rail in place of each of the first's.
    """
    plane_N = _planes(fabric, nic_TC)
    port_TP = _same_ports(fabric, plane_N, nic_TC)
    pairs_T = [_on_rail(queue_pairs, nic_TC, rail) for rail in range(len(nic_TC))]
    together = build_network(fabric, join_queue_pairs(pairs_T), hash_spec)
    path_TQDH = np.stack(np.split(together.epochs[0].port_QDH, len(nic_TC)))
    expected_TQDH = np.where(path_TQDH[0] == NO_PORT, NO_PORT, port_TP[:, path_TQDH[0]])
    return ComparedRails(
        network_T=tuple(
            Network(fabric=fabric, queue_pairs=pairs, epochs=(replace(together.epochs[0], port_QDH=path_QDH),))
            for pairs, path_QDH in zip(pairs_T, path_TQDH, strict=True)
        ),
        are_paths_alike=bool((path_TQDH == expected_TQDH).all()),
        crowding_T=np.array([_crowding(fabric, path_QDH) for path_QDH in path_TQDH]),
        is_other_TP=_ports_of_others(fabric, plane_N, len(nic_TC)),
    )


def _on_rail(queue_pairs: QueuePairs, nic_TC: IntArray, rail: int) -> QueuePairs:
    """Return the queue pairs between a rail's NICs: numbers and source ports are those of the first rail."""
    nic_of = np.zeros(int(nic_TC[0].max(initial=0)) + 1, np.int64)
    nic_of[nic_TC[0]] = nic_TC[rail]
    return replace(
        queue_pairs,
        source_nic_Q=nic_of[queue_pairs.source_nic_Q],
        destination_nic_Q=nic_of[queue_pairs.destination_nic_Q],
    )


def _planes(fabric: Fabric, nic_TC: IntArray) -> IntArray:
    """Return the rail of each switch, NO_PLANE of other nodes; raises RouteError for a switch that joins two."""
    far_P = fabric.port_node_P[fabric.port_peer_P]
    part_N = _parts(fabric)
    rail_of_part: dict[int, int] = {}
    for rail, nic_C in enumerate(nic_TC):
        switches = far_P[np.isin(fabric.port_nic_P, nic_C)]
        for part in np.unique(part_N[switches]).tolist():
            if rail_of_part.setdefault(part, rail) != rail:
                switch = fabric.node_name_N[int(switches[part_N[switches] == part][0])]
                _refuse(
                    f"{switch}, which NICs of rail {rail_of_part[part]} and of rail {rail} reach",
                    "rails that no switch joins",
                    "give each rail a plane (fabric: {planes: N}), or run the whole",
                )
    rail_of = np.full(int(part_N.max()) + 1, NO_PLANE)
    rail_of[list(rail_of_part)] = list(rail_of_part.values())
    return np.where(fabric.node_kind_N == NodeKind.HOST, NO_PLANE, rail_of[part_N])


def _parts(fabric: Fabric) -> IntArray:
    """Return the first node of those that each switch reaches through switches."""
    is_host_P = fabric.port_nic_P != NO_NIC
    between = np.flatnonzero(~is_host_P & ~is_host_P[fabric.port_peer_P])
    near, far = fabric.port_node_P[between], fabric.port_node_P[fabric.port_peer_P[between]]
    part_N = np.arange(fabric.num_nodes)
    before_N = np.full_like(part_N, NO_PLANE)
    while not np.array_equal(part_N, before_N):
        before_N = part_N.copy()
        np.minimum.at(part_N, near, before_N[far])
    return part_N


def _same_ports(fabric: Fabric, plane_N: IntArray, nic_TC: IntArray) -> IntArray:
    """Return the port of each rail that stands in place of each of the first's, shape (T, P); raises RouteError.

    Ports that are not the first rail's have NO_PORT.
    """
    port_TP = np.full((len(nic_TC), fabric.num_ports), NO_PORT, np.int64)
    first = _ports_of(fabric, plane_N, 0)
    for rail in range(len(nic_TC)):
        port = _ports_of(fabric, plane_N, rail)
        if len(port) != len(first):
            _refuse(f"{len(port)} ports of rail {rail}'s switches, and {len(first)} of rail 0's", "as many")
        port_TP[rail, first] = port
        port_TP[rail, fabric.port_peer_P[first]] = fabric.port_peer_P[port]
        _require_same_links(fabric, first, port, port_TP[rail], rail)
    return port_TP


def _ports_of(fabric: Fabric, plane_N: IntArray, rail: int) -> IntArray:
    """Return the ports of a rail's switches, switch after switch."""
    port = np.flatnonzero(plane_N[fabric.port_node_P] == rail)
    return port[np.argsort(fabric.port_node_P[port], kind="stable")]


def _require_same_links(fabric: Fabric, first: IntArray, port: IntArray, port_P: IntArray, rail: int) -> None:
    """Raise RouteError for the first port of a rail whose link is not that of the same port of the first rail."""
    near, far = fabric.port_peer_P[first], fabric.port_peer_P[port]
    same_node = np.diff(fabric.port_node_P[first]) == 0
    is_other_node = np.zeros(len(first), bool)
    is_other_node[1:] = same_node != (np.diff(fabric.port_node_P[port]) == 0)
    is_to_host = fabric.port_nic_P[near] != NO_NIC
    same_end = np.where(is_to_host, fabric.port_node_P[near] == fabric.port_node_P[far], port_P[near] == far)
    differs = is_other_node | ~same_end | (is_to_host != (fabric.port_nic_P[far] != NO_NIC))
    for values_P in (fabric.port_rate_bps_P, fabric.port_delay_ps_P):
        differs |= (values_P[first] != values_P[port]) | (values_P[near] != values_P[far])
    if differs.any():
        row = int(np.argmax(differs))
        _refuse(
            f"{fabric.link_label(int(port[row]))} of rail {rail}",
            f"a link as {fabric.link_label(int(first[row]))} of rail 0: its rate, its delay and the same end",
        )


def _crowding(fabric: Fabric, path_QDH: IntArray) -> int:
    """Return how many queue pairs send data through the most shared link between switches."""
    is_between_P = (fabric.port_nic_P == NO_NIC) & (fabric.port_nic_P[fabric.port_peer_P] == NO_NIC)
    port = path_QDH[:, 0][path_QDH[:, 0] != NO_PORT]
    return int(np.bincount(port[is_between_P[port]], minlength=1).max())


def _ports_of_others(fabric: Fabric, plane_N: IntArray, num_rails: int) -> BoolArray:
    """Return which ports are of another rail's links, for each rail."""
    plane_P = np.maximum(plane_N[fabric.port_node_P], plane_N[fabric.port_node_P[fabric.port_peer_P]])
    return np.asarray((plane_P != NO_PLANE) & (plane_P != np.arange(num_rails)[:, None]))


def _refuse(found: str, allowed: str, next_step: str = "run the whole: leave `fold` out") -> NoReturn:
    raise RouteError(Mistake(where=WHERE, found=f"rails, with {found}", allowed=allowed, next_step=next_step))
