"""Next hops on shortest paths, before any hashing.

The destinations of a fabric fall into groups with the same *attachment*, the switches their NICs are cabled to. For
each attachment one breadth-first search gives every switch its distance; the ports that lead one step nearer are its
equal-cost choices, in port order, parallel links counted one by one. Ports that have failed lead nowhere.

Shapes: N nodes, S switches, P ports, C NICs, T ports between switches, A rows of flows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.topology.fabric import NO_NIC, Fabric, NodeKind
from fabrictune.topology.network import NO_PORT

UNREACHED = -1
_LAST = np.iinfo(np.int64).max  # sorts behind every port


@dataclass(frozen=True, kw_only=True)
class EqualCostPorts:
    """The equal-cost ports of every switch towards one attachment; a switch of the attachment itself has none."""

    port_X: NDArray[np.int32]  # by switch, then in port order
    num_choices_S: NDArray[np.int32]

    def of(self, switch: int) -> list[int]:
        """Return the ports of the switch with this number among switches."""
        first = int(self.num_choices_S[:switch].sum())
        return [int(port) for port in self.port_X[first : first + self.num_choices_S[switch]]]


class SwitchGraph:
    """The switches of a fabric and where the ports between them lead; worked out once for all attachments."""

    def __init__(self, fabric: Fabric, is_failed_P: BoolArray | None = None) -> None:
        is_failed_P = np.zeros(fabric.num_ports, bool) if is_failed_P is None else is_failed_P
        is_failed_P = is_failed_P | is_failed_P[fabric.port_peer_P]  # a link works in both directions or in none
        self.fabric, self.is_failed_P = fabric, is_failed_P
        self.is_switch_N = fabric.node_kind_N == NodeKind.SWITCH
        self.switch_N = np.cumsum(self.is_switch_N) - 1  # index among switches
        self.num_switches = int(self.is_switch_N.sum())
        self.next_node_P = fabric.port_node_P[fabric.port_peer_P]
        self.nic_port_C2 = _nic_ports(fabric, is_failed_P)
        between_switches_P = self.is_switch_N[fabric.port_node_P] & self.is_switch_N[self.next_node_P] & ~is_failed_P
        trunk_T = np.nonzero(between_switches_P)[0]
        self.trunk_T = trunk_T[np.argsort(fabric.port_node_P[trunk_T], kind="stable")]  # by node, then in port order
        self.from_T = self.switch_N[fabric.port_node_P[self.trunk_T]]
        self.to_T = self.switch_N[self.next_node_P[self.trunk_T]]

    def distances(self, destination_nic: int) -> IntArray:
        """Return each switch's number of links to the attachment of a NIC, UNREACHED elsewhere; shape (S,)."""
        distance_S = np.full(self.num_switches, UNREACHED)
        port_X = self.nic_port_C2[destination_nic]
        attached_X = self.next_node_P[port_X[port_X != NO_PORT]]
        distance_S[self.switch_N[attached_X[self.is_switch_N[attached_X]]]] = 0
        level, is_growing = 0, True
        while is_growing:
            reached = self.to_T[(distance_S == level)[self.from_T] & (distance_S == UNREACHED)[self.to_T]]
            level += 1
            distance_S[reached] = level
            is_growing = len(reached) > 0
        return distance_S

    def equal_cost(self, distance_S: IntArray) -> EqualCostPorts:
        """Return the ports that lead one step nearer."""
        distance_T = distance_S[self.to_T]
        is_nearer_T = (distance_T != UNREACHED) & (distance_S[self.from_T] == distance_T + 1)
        num_choices_S = np.bincount(self.from_T[is_nearer_T], minlength=self.num_switches)
        return EqualCostPorts(
            port_X=self.trunk_T[is_nearer_T].astype(np.int32), num_choices_S=num_choices_S.astype(np.int32)
        )

    def exits(self, destination_nic_A: IntArray, node_A: IntArray) -> IntArray:
        """Return the ports, shape (A, 2), from each node straight to the destination NIC, NO_PORT after the last."""
        nic_port_A2 = self.nic_port_C2[destination_nic_A]
        exit_A2 = self.fabric.port_peer_P[nic_port_A2]
        is_here_A2 = (nic_port_A2 != NO_PORT) & (self.fabric.port_node_P[exit_A2] == node_A[:, None])
        return _first_ports(exit_A2, is_here_A2)

    def departures(self, source_nic_A: IntArray, destination_nic_A: IntArray, distance_S: IntArray) -> IntArray:
        """Return the ports, shape (A, 2), through which flows to one attachment may leave their source NIC.

        They are the nearer of the NIC's ports, or both, in port order; NO_PORT after the last, and where none leads on.
        """
        port_A2 = self.nic_port_C2[source_nic_A]
        next_A2 = self.next_node_P[port_A2]
        far = self.num_switches + 1
        distance_or_none_S1 = np.append(distance_S, UNREACHED)  # the last for NICs of a fabric without switches
        to_switch_A2 = np.where(self.is_switch_N[next_A2], distance_or_none_S1[self.switch_N[next_A2]], UNREACHED)
        distance_A2 = np.where(to_switch_A2 == UNREACHED, far, to_switch_A2 + 1)
        nic_behind_A2 = self.fabric.port_nic_P[self.fabric.port_peer_P[port_A2]]
        distance_A2[nic_behind_A2 == destination_nic_A[:, None]] = 0  # a cable from NIC to NIC
        distance_A2[port_A2 == NO_PORT] = far
        nearest_A1 = distance_A2.min(axis=1, keepdims=True)
        return _first_ports(port_A2, (distance_A2 == nearest_A1) & (nearest_A1 < far))


def _first_ports(port_A2: IntArray, is_kept_A2: BoolArray) -> IntArray:
    """Return the ports that are kept, in port order, NO_PORT after the last."""
    first_A, second_A = np.where(is_kept_A2, port_A2, _LAST).T
    low_A, high_A = np.minimum(first_A, second_A), np.maximum(first_A, second_A)
    kept_A2 = np.stack([low_A, high_A], axis=1)
    kept_A2[kept_A2 == _LAST] = NO_PORT
    return kept_A2


def by_attachment(graphs: Sequence[SwitchGraph], destination_nic_F: IntArray) -> Iterator[IntArray]:
    """Yield the rows of the flows whose destinations have one attachment in each of the graphs of a fabric."""
    attached = []
    for graph in graphs:
        attached_C2 = np.where(graph.nic_port_C2 == NO_PORT, NO_PORT, graph.next_node_P[graph.nic_port_C2])
        attached.append(np.sort(attached_C2, axis=1))
    attachment_C = np.unique(np.concatenate(attached, axis=1), axis=0, return_inverse=True)[1].ravel()
    attachment_F = attachment_C[destination_nic_F]
    order_F = np.argsort(attachment_F, kind="stable")
    starts = np.nonzero(np.diff(attachment_F[order_F], prepend=-1))[0]
    if len(order_F):
        yield from np.split(order_F, starts[1:])


def _nic_ports(fabric: Fabric, is_failed_P: BoolArray) -> IntArray:
    """Return each NIC's working ports in port order, shape (C, 2), NO_PORT after the last."""
    port_X = np.nonzero((fabric.port_nic_P != NO_NIC) & ~is_failed_P)[0]
    port_X = port_X[np.argsort(fabric.port_nic_P[port_X], kind="stable")]
    nic_X = fabric.port_nic_P[port_X]
    nic_port_C2 = np.full((fabric.num_nics, 2), NO_PORT)
    nic_port_C2[nic_X, np.arange(len(nic_X)) - np.searchsorted(nic_X, nic_X)] = port_X
    return nic_port_C2
