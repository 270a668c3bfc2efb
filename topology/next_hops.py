"""Next hops: the ports a switch may send a packet through towards each NIC, for all switches and NICs at once.

Routing takes one of them by a hash and writes down the path; an engine that chooses packet by packet needs them all. A
switch has few different sets of next hops (all its uplinks, or one downlink), so a table of switch and attachment names
the set, and each set is stored once. At a switch of the NIC's own attachment the set is empty: what is left is an exit.

A port of a set has a weight, for switches that do not treat equal costs as equal: its rate, or the number of links with
which the next switch leads on, so that a switch with two of three links left is given two thirds of the traffic.

Source of the weights: Zhou et al., "WCMP: Weighted Cost Multipathing for Improved Fairness in Data Centers",
EuroSys 2014, section 3.

Shapes: N nodes, C NICs, A attachments, S switches, T ports between switches, K sets, X ports of all sets.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.shortest_paths import SwitchGraph, by_attachment

NO_SWITCH = -1

WeightRule = Literal["equal", "rate", "links"]


@dataclass(frozen=True, kw_only=True)
class NextHops:
    """The equal-cost ports of every switch towards every NIC."""

    switch_N: IntArray  # a node's number among switches, NO_SWITCH for a host
    attachment_C: IntArray
    set_AS: NDArray[np.int32]
    offset_K1: IntArray  # set k is port_X[offset_K1[k] : offset_K1[k + 1]], in port order
    port_X: NDArray[np.int32]
    weight_X: NDArray[np.int32]  # 1 or more
    exit_C2: IntArray  # ports of switches straight to the NIC, NO_PORT after the last

    def towards(self, switch: int, nic: int) -> list[int]:
        """Return the ports of a node towards a NIC; none at a switch that the NIC is attached to."""
        number = self.set_AS[self.attachment_C[nic], self.switch_N[switch]]
        return [int(port) for port in self.port_X[self.offset_K1[number] : self.offset_K1[number + 1]]]


def next_hops(fabric: Fabric, *, weights: WeightRule = "equal", is_failed_P: BoolArray | None = None) -> NextHops:
    """Return the next hops; while it is made a table of attachments and ports between switches is in memory."""
    graph = SwitchGraph(fabric, is_failed_P)
    attachment_C = np.zeros(fabric.num_nics, np.int64)
    rows = []
    for number, nic_X in enumerate(by_attachment((graph,), np.arange(fabric.num_nics))):
        attachment_C[nic_X] = number
        rows.append(_weight_T(graph, int(nic_X[0]), weights))
    weight_AT = np.array(rows, np.int32).reshape(len(rows), len(graph.trunk_T))
    set_AS, sets = _share_sets(graph, weight_AT)
    return NextHops(
        switch_N=np.where(graph.is_switch_N, graph.switch_N, NO_SWITCH),
        attachment_C=attachment_C,
        set_AS=set_AS,
        offset_K1=np.cumsum([0, *(len(port_X) for port_X, _ in sets)]),
        port_X=np.concatenate([port_X for port_X, _ in sets]).astype(np.int32),
        weight_X=np.concatenate([weight_X for _, weight_X in sets]).astype(np.int32),
        exit_C2=_exits(graph),
    )


def _weight_T(graph: SwitchGraph, nic: int, weights: WeightRule) -> NDArray[np.int32]:
    """Return the weight of each port between switches towards a NIC, 0 for one that leads no nearer."""
    choices = graph.equal_cost(graph.distances(nic))
    is_nearer_P = np.zeros(graph.fabric.num_ports, bool)
    is_nearer_P[choices.port_X] = True
    weight_T = is_nearer_P[graph.trunk_T].astype(np.int32)
    if weights == "rate":
        rate_T = graph.fabric.port_rate_bps_P[graph.trunk_T]
        weight_T *= (rate_T // np.gcd.reduce(rate_T)).astype(np.int32)
    elif weights == "links":
        weight_T *= np.maximum(choices.num_choices_S[graph.to_T], 1)
    return weight_T


def _share_sets(
    graph: SwitchGraph, weight_AT: NDArray[np.int32]
) -> tuple[NDArray[np.int32], list[tuple[IntArray, NDArray[np.int32]]]]:
    """Return the set of each attachment and switch, shape (A, S), and ports and weights of each set; set 0 is empty."""
    set_AS = np.zeros((len(weight_AT), graph.num_switches), np.int32)
    sets = [(np.zeros(0, np.int64), np.zeros(0, np.int32))]
    bound_S1 = np.searchsorted(graph.from_T, np.arange(graph.num_switches + 1))
    for switch in range(graph.num_switches):
        own = slice(bound_S1[switch], bound_S1[switch + 1])
        if own.start == own.stop:
            continue
        distinct, which_A = np.unique(weight_AT[:, own], axis=0, return_inverse=True)
        is_empty = ~distinct.any(axis=1)
        number = np.where(is_empty, 0, len(sets) + np.cumsum(~is_empty) - 1)
        set_AS[:, switch] = number[which_A.ravel()]
        sets.extend((graph.trunk_T[own][row > 0], row[row > 0]) for row in distinct[~is_empty])
    return set_AS, sets


def _exits(graph: SwitchGraph) -> IntArray:
    """Return the switches' ports straight to each NIC, shape (C, 2)."""
    nic_port_C2 = graph.nic_port_C2
    exit_C2 = graph.fabric.port_peer_P[nic_port_C2]
    is_exit_C2 = (nic_port_C2 != NO_PORT) & graph.is_switch_N[graph.fabric.port_node_P[exit_C2]]
    exits: IntArray = np.where(is_exit_C2, exit_C2, NO_PORT)
    return exits
