"""Paths of all queue pairs at once: shortest paths, and a hash at every hop to choose among equals.

The destinations of a fabric fall into groups with the same *attachment*, the switches their NICs are cabled to. For
each attachment one breadth-first search gives every switch its distance; the ports that lead one step nearer are its
equal-cost choices, in port order, parallel links counted one by one. All queue pairs towards that attachment then
advance hop by hop together: a hop is a few array operations however many they are. Memory is that of the fabric and of
the paths themselves.

Hosts carry no transit traffic: a path leaves its source host at once and enters a host only at its end. Queue pairs
between two NICs of one host go through the fabric like all others. Acknowledgements take the path of the reversed
addresses with the queue pair's own source port.

Shapes: Q queue pairs, F = 2 Q flows (data, then acknowledgements), N nodes, P ports, H hops, W flows of one attachment.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foundation.errors import Mistake, RouteError
from topology.fabric import NO_NIC, Fabric, IntArray, NodeKind
from topology.hashing import HashSpec
from topology.hashing.five_tuples import FiveTuples
from topology.network import NO_PORT, Network, QueuePairs, RoutingEpoch

UNREACHED = -1
MAX_SHOWN = 10  # queue pairs without a path that are named one by one


def build_network(fabric: Fabric, queue_pairs: QueuePairs, hash_spec: HashSpec) -> Network:
    """Return the network with one routing epoch; raises RouteError."""
    epoch = route(fabric, queue_pairs, hash_spec)
    return Network(fabric=fabric, queue_pairs=queue_pairs, epochs=(epoch,))


def route(fabric: Fabric, queue_pairs: QueuePairs, hash_spec: HashSpec, *, start_ps: int = 0) -> RoutingEpoch:
    """Return the path of every queue pair in both directions; raises RouteError naming the pairs without one."""
    flows = _Flows.of(fabric, queue_pairs)
    _refuse_loops(fabric, queue_pairs)
    routes = _Routes(fabric, hash_spec)
    path_FH = np.full((len(flows), 1), NO_PORT, np.int32)
    for row_W in _by_attachment(fabric, flows.destination_nic_F):
        path_WH = routes.advance(flows.take(row_W))
        if path_WH.shape[1] > path_FH.shape[1]:
            wider = path_WH.shape[1] - path_FH.shape[1]
            path_FH = np.pad(path_FH, ((0, 0), (0, wider)), constant_values=NO_PORT)
        path_FH[row_W, : path_WH.shape[1]] = path_WH
    _refuse_unreached(fabric, queue_pairs, path_FH)
    return RoutingEpoch(start_ps=start_ps, port_QDH=np.stack(np.split(path_FH, 2), axis=1))


class EqualCost:
    """The ports among which a switch chooses towards a NIC, worked out once for each attachment."""

    def __init__(self, fabric: Fabric) -> None:
        self._routes = _Routes(fabric, HashSpec())
        self._choices: dict[tuple[int, ...], tuple[IntArray, IntArray]] = {}

    def ports(self, switch: int, destination_nic: int) -> list[int]:
        """Return the equal-cost ports in the order in which a hash counts them."""
        routes = self._routes
        exits = routes._exits(np.array([destination_nic]), np.array([switch]))[0]
        if exits[0] != NO_PORT:
            return [port for port in exits.tolist() if port != NO_PORT]
        port_X = routes.nic_port_C2[destination_nic]
        attachment = tuple(routes.next_node_P[port_X[port_X != NO_PORT]].tolist())
        if attachment not in self._choices:
            self._choices[attachment] = routes._choices(routes._distances(destination_nic))
        nearer_T, first_N1 = self._choices[attachment]
        ports: list[int] = nearer_T[first_N1[switch] : first_N1[switch + 1]].tolist()
        return ports


@dataclass(frozen=True, kw_only=True)
class _Flows:
    """One direction of a queue pair each."""

    source_nic_F: IntArray
    destination_nic_F: IntArray
    headers: FiveTuples

    @classmethod
    def of(cls, fabric: Fabric, queue_pairs: QueuePairs) -> "_Flows":
        source_F = np.concatenate([queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q])
        destination_F = np.concatenate([queue_pairs.destination_nic_Q, queue_pairs.source_nic_Q])
        for nic_F in (source_F, destination_F):
            assert ((nic_F >= 0) & (nic_F < fabric.num_nics)).all(), "a queue pair between NICs of this fabric"
        headers = FiveTuples(
            source_ipv4_F=fabric.nic_ipv4_C[source_F],
            destination_ipv4_F=fabric.nic_ipv4_C[destination_F],
            source_port_F=np.concatenate([queue_pairs.source_port_Q, queue_pairs.source_port_Q]),
        )
        return cls(source_nic_F=source_F, destination_nic_F=destination_F, headers=headers)

    def __len__(self) -> int:
        return len(self.source_nic_F)

    def take(self, row_W: IntArray) -> "_Flows":
        return _Flows(
            source_nic_F=self.source_nic_F[row_W],
            destination_nic_F=self.destination_nic_F[row_W],
            headers=self.headers.take(row_W),
        )


class _Routes:
    """What routing needs of a fabric, worked out once for all attachments."""

    def __init__(self, fabric: Fabric, hash_spec: HashSpec) -> None:
        self.fabric = fabric
        self.hash_spec = hash_spec
        self.seed_N = hash_spec.node_seeds(fabric.num_nodes)
        self.is_switch_N = fabric.node_kind_N == NodeKind.SWITCH
        self.next_node_P = fabric.port_node_P[fabric.port_peer_P]
        self.nic_port_C2 = nic_ports(fabric)
        between_switches_P = self.is_switch_N[fabric.port_node_P] & self.is_switch_N[self.next_node_P]
        trunk_T = np.nonzero(between_switches_P)[0]  # T ports between switches, by node, then in port order
        self.trunk_T = trunk_T[np.argsort(fabric.port_node_P[trunk_T], kind="stable")]
        self.from_T = fabric.port_node_P[self.trunk_T]
        self.to_T = self.next_node_P[self.trunk_T]

    def advance(self, flows: _Flows) -> NDArray[np.int32]:
        """Return the paths, shape (W, hops), of flows whose destinations share one attachment."""
        distance_N = self._distances(int(flows.destination_nic_F[0]))
        choices = self._choices(distance_N)
        port_W = self._leave(flows, distance_N)
        columns = [port_W]
        while len(row_A := np.nonzero(self._is_at_switch(port_W))[0]):  # A flows still on their way
            node_A = self.next_node_P[port_W[row_A]]
            port_W = np.full(len(flows), NO_PORT)
            port_W[row_A] = self._next_ports(flows.take(row_A), node_A, *choices)
            columns.append(port_W)
        return np.stack(columns, axis=1).astype(np.int32)

    def _next_ports(self, flows: _Flows, node_A: IntArray, nearer_T: IntArray, first_N1: IntArray) -> IntArray:
        """Return the port through which each of A flows leaves the switch it is at."""
        exit_A2 = self._exits(flows.destination_nic_F, node_A)
        num_exits_A = (exit_A2 != NO_PORT).sum(axis=1)
        is_last_A = num_exits_A > 0
        num_choices_A = np.where(is_last_A, num_exits_A, first_N1[node_A + 1] - first_N1[node_A])
        choice_A = self.hash_spec.choose_among(flows.headers, self.seed_N[node_A], num_choices_A)
        port_A = np.empty_like(node_A)
        port_A[is_last_A] = exit_A2[is_last_A, choice_A[is_last_A]]
        port_A[~is_last_A] = nearer_T[(first_N1[node_A] + choice_A)[~is_last_A]]
        return port_A

    def _distances(self, destination_nic: int) -> IntArray:
        """Return each switch's number of links to the attachment of a NIC, UNREACHED elsewhere."""
        distance_N = np.full(self.fabric.num_nodes, UNREACHED)
        port_X = self.nic_port_C2[destination_nic]
        attached_X = self.next_node_P[port_X[port_X != NO_PORT]]
        distance_N[attached_X[self.is_switch_N[attached_X]]] = 0
        level, is_growing = 0, True
        while is_growing:
            reached = self.to_T[(distance_N == level)[self.from_T] & (distance_N == UNREACHED)[self.to_T]]
            level += 1
            distance_N[reached] = level
            is_growing = len(reached) > 0
        return distance_N

    def _choices(self, distance_N: IntArray) -> tuple[IntArray, IntArray]:
        """Return the ports that lead one step nearer, and where each node's begin (N + 1 offsets)."""
        distance_T = distance_N[self.to_T]
        is_nearer_T = (distance_T != UNREACHED) & (distance_N[self.from_T] == distance_T + 1)
        num_choices_N = np.bincount(self.from_T[is_nearer_T], minlength=self.fabric.num_nodes)
        return self.trunk_T[is_nearer_T], np.concatenate([[0], np.cumsum(num_choices_N)])

    def _leave(self, flows: _Flows, distance_N: IntArray) -> IntArray:
        """Return the port of its source NIC that each flow leaves through, NO_PORT where none leads on."""
        port_W2 = self.nic_port_C2[flows.source_nic_F]
        next_W2 = self.next_node_P[port_W2]
        far = self.fabric.num_nodes + 1
        distance_W2 = np.where(distance_N[next_W2] == UNREACHED, far, distance_N[next_W2] + 1)
        nic_behind_W2 = self.fabric.port_nic_P[self.fabric.port_peer_P[port_W2]]
        distance_W2[nic_behind_W2 == flows.destination_nic_F[:, None]] = 0  # a cable from NIC to NIC
        distance_W2[port_W2 == NO_PORT] = far
        nearest_W = distance_W2.min(axis=1)
        is_choice_W2 = distance_W2 == nearest_W[:, None]
        node_W = self.fabric.nic_host_C[flows.source_nic_F]
        choice_W = self.hash_spec.choose_among(flows.headers, self.seed_N[node_W], is_choice_W2.sum(axis=1))
        column_W = np.where(is_choice_W2.all(axis=1), choice_W, np.argmax(is_choice_W2, axis=1))
        return np.where(nearest_W == far, NO_PORT, np.take_along_axis(port_W2, column_W[:, None], axis=1)[:, 0])

    def _is_at_switch(self, port_W: IntArray) -> NDArray[np.bool_]:
        is_at_switch_W: NDArray[np.bool_] = (port_W != NO_PORT) & self.is_switch_N[self.next_node_P[port_W]]
        return is_at_switch_W

    def _exits(self, destination_nic_A: IntArray, node_A: IntArray) -> IntArray:
        """Return the ports, shape (A, 2), from each node straight to the destination NIC, NO_PORT after the last."""
        nic_port_A2 = self.nic_port_C2[destination_nic_A]
        exit_A2 = self.fabric.port_peer_P[nic_port_A2]
        is_here_A2 = (nic_port_A2 != NO_PORT) & (self.fabric.port_node_P[exit_A2] == node_A[:, None])
        exit_A2 = np.where(is_here_A2, exit_A2, self.fabric.num_ports)
        exit_A2.sort(axis=1)  # port order, and what is not an exit last
        return np.where(exit_A2 == self.fabric.num_ports, NO_PORT, exit_A2)


def nic_ports(fabric: Fabric) -> IntArray:
    """Return each NIC's ports in port order, shape (C, 2), NO_PORT after the last."""
    port_X = np.nonzero(fabric.port_nic_P != NO_NIC)[0]
    port_X = port_X[np.argsort(fabric.port_nic_P[port_X], kind="stable")]
    nic_X = fabric.port_nic_P[port_X]
    nic_port_C2 = np.full((fabric.num_nics, 2), NO_PORT)
    nic_port_C2[nic_X, np.arange(len(nic_X)) - np.searchsorted(nic_X, nic_X)] = port_X
    return nic_port_C2


def _by_attachment(fabric: Fabric, destination_nic_F: IntArray) -> Iterator[IntArray]:
    """Yield the rows of the flows towards each attachment."""
    nic_port_C2 = nic_ports(fabric)
    attached_C2 = np.where(nic_port_C2 == NO_PORT, NO_PORT, fabric.port_node_P[fabric.port_peer_P[nic_port_C2]])
    attached_C2.sort(axis=1)
    attachment_C = np.unique(attached_C2, axis=0, return_inverse=True)[1].ravel()
    attachment_F = attachment_C[destination_nic_F]
    order_F = np.argsort(attachment_F, kind="stable")
    starts = np.nonzero(np.diff(attachment_F[order_F], prepend=-1))[0]
    if len(order_F):
        yield from np.split(order_F, starts[1:])


def _refuse_loops(fabric: Fabric, queue_pairs: QueuePairs) -> None:
    rows = np.nonzero(queue_pairs.source_nic_Q == queue_pairs.destination_nic_Q)[0]
    if len(rows):
        raise RouteError(
            *(
                Mistake(
                    where=f"queue pair {row}",
                    found=f"from NIC {fabric.nic_label(int(queue_pairs.source_nic_Q[row]))} to itself",
                    allowed="two different NICs",
                )
                for row in rows[:MAX_SHOWN]
            )
        )


def _refuse_unreached(fabric: Fabric, queue_pairs: QueuePairs, path_FH: NDArray[np.int32]) -> None:
    rows = np.unique(np.nonzero(path_FH[:, 0] == NO_PORT)[0] % max(len(queue_pairs), 1))
    if len(rows):
        raise RouteError(
            *(
                Mistake(
                    where=f"queue pair {row}",
                    found=(
                        f"no path from {fabric.nic_label(int(queue_pairs.source_nic_Q[row]))}"
                        f" to {fabric.nic_label(int(queue_pairs.destination_nic_Q[row]))}"
                    ),
                    allowed="two NICs joined by switches",
                    next_step=f"cable the two ({len(rows)} queue pairs have no path)",
                )
                for row in rows[:MAX_SHOWN]
            )
        )
