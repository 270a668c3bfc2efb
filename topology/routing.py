"""Paths of all queue pairs at once: shortest paths, and a hash at every hop to choose among equals.

Hosts carry no transit traffic: a path leaves its source host at once and enters a host only at its end. Queue pairs
between two NICs of one host go through the fabric like all others. Acknowledgements take the path of the reversed
addresses with the queue pair's own source port.

Which ports are equal is in `shortest_paths`, how flows advance in `path_tracing`.

Shapes: Q queue pairs, F = 2 Q flows (data, then acknowledgements), N nodes, P ports, H hops.
"""

import numpy as np

from fabrictune.foundation.arrays import BoolArray
from fabrictune.foundation.errors import Mistake, RouteError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import FiveTuples, HashSpec
from fabrictune.topology.network import NO_PORT, Network, QueuePairs, RoutingEpoch
from fabrictune.topology.path_tracing import PathTracer, find_paths
from fabrictune.topology.shortest_paths import EqualCostPorts, SwitchGraph

MAX_SHOWN = 10  # queue pairs without a path that are named one by one


def build_network(fabric: Fabric, queue_pairs: QueuePairs, hash_spec: HashSpec) -> Network:
    """Return the network with one routing epoch; raises RouteError."""
    epoch = route(fabric, queue_pairs, hash_spec)
    return Network(fabric=fabric, queue_pairs=queue_pairs, epochs=(epoch,))


def route(
    fabric: Fabric,
    queue_pairs: QueuePairs,
    hash_spec: HashSpec,
    *,
    start_ps: int = 0,
    is_failed_P: BoolArray | None = None,
    may_cut_off: bool = False,
) -> RoutingEpoch:
    """Return the path of every queue pair in both directions; raises RouteError naming the pairs without one.

    `is_failed_P` marks ports that carry nothing; a link of which one port has failed is down in both directions. With
    `may_cut_off` a queue pair without a path has one of no ports.
    """
    _check_ends(fabric, queue_pairs)
    path_FH = find_paths(
        fabric,
        np.concatenate([queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q]),
        np.concatenate([queue_pairs.destination_nic_Q, queue_pairs.source_nic_Q]),
        _headers_both_ways(fabric, queue_pairs),
        hash_spec,
        is_failed_P=is_failed_P,
    )
    if not may_cut_off:
        _refuse_unreached(fabric, queue_pairs, (path_FH[:, 0] != NO_PORT).reshape(2, -1).all(axis=0))
    down_ports = frozenset() if is_failed_P is None else frozenset(np.nonzero(is_failed_P)[0].tolist())
    return RoutingEpoch(start_ps=start_ps, port_QDH=np.stack(np.split(path_FH, 2), axis=1), down_ports=down_ports)


def data_routes(fabric: Fabric, queue_pairs: QueuePairs, *, is_failed_P: BoolArray | None = None) -> PathTracer:
    """Return the ways of the data of every queue pair under any hash; raises RouteError naming the pairs without one.

    A pair's acknowledgements have a way where its data have one, since a link is up or down in both directions.
    """
    _check_ends(fabric, queue_pairs)
    routes = PathTracer(fabric, queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q, is_failed_P=is_failed_P)
    _refuse_unreached(fabric, queue_pairs, routes.has_way_F)
    return routes


def data_headers(fabric: Fabric, queue_pairs: QueuePairs) -> FiveTuples:
    """Return the headers of the data of every queue pair."""
    return FiveTuples(
        source_ipv4_F=fabric.nic_ipv4_C[queue_pairs.source_nic_Q],
        destination_ipv4_F=fabric.nic_ipv4_C[queue_pairs.destination_nic_Q],
        source_port_F=queue_pairs.source_port_Q,
        destination_qpn_F=queue_pairs.destination_qpn_Q,
    )


class EqualCost:
    """The ports among which a switch chooses towards a NIC, worked out once for each attachment."""

    def __init__(self, fabric: Fabric) -> None:
        self._graph = SwitchGraph(fabric)
        self._choices: dict[tuple[int, ...], EqualCostPorts] = {}

    def ports(self, switch: int, destination_nic: int) -> list[int]:
        """Return the equal-cost ports in the order in which a hash counts them."""
        graph = self._graph
        exits = graph.exits(np.array([destination_nic]), np.array([switch]))[0]
        if exits[0] != NO_PORT:
            return [port for port in exits.tolist() if port != NO_PORT]
        port_X = graph.nic_port_C2[destination_nic]
        attachment = tuple(graph.next_node_P[port_X[port_X != NO_PORT]].tolist())
        if attachment not in self._choices:
            self._choices[attachment] = graph.equal_cost(graph.distances(destination_nic))
        return self._choices[attachment].of(int(graph.switch_N[switch]))


def _headers_both_ways(fabric: Fabric, queue_pairs: QueuePairs) -> FiveTuples:
    data = data_headers(fabric, queue_pairs)
    return FiveTuples(
        source_ipv4_F=np.concatenate([data.source_ipv4_F, data.destination_ipv4_F]),
        destination_ipv4_F=np.concatenate([data.destination_ipv4_F, data.source_ipv4_F]),
        source_port_F=np.concatenate([data.source_port_F, data.source_port_F]),
        destination_qpn_F=np.concatenate([queue_pairs.destination_qpn_Q, queue_pairs.source_qpn_Q]),
    )


def _check_ends(fabric: Fabric, queue_pairs: QueuePairs) -> None:
    """Raise RouteError for queue pairs from a NIC to itself."""
    for nic_Q in (queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q):
        assert ((nic_Q >= 0) & (nic_Q < fabric.num_nics)).all(), "a queue pair between NICs of this fabric"
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


def _refuse_unreached(fabric: Fabric, queue_pairs: QueuePairs, has_way_Q: BoolArray) -> None:
    rows = np.nonzero(~has_way_Q)[0]
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
