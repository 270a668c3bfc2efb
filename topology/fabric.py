"""Fabric: nodes and directed ports as arrays, checked when made and never changed afterwards.

A node is a host (server) or a switch. A *port* has one direction: it is where packets leave a node, with a transmitter
of `rate_bps` and a wire of `delay_ps`; a *link* is two ports, each the other's `peer`. A host's ports belong to NICs,
the endpoints of traffic: a NIC has one port, or two where it is attached to two ToRs.

Shapes: N nodes, P ports, C NICs.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import FabricError

NO_NIC = -1  # port of a switch
NO_RAIL = -1
NO_GROUP = -1
UNKNOWN_TIER = -1


class NodeKind(IntEnum):
    """What a node is."""

    HOST = 0
    SWITCH = 1


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """A network of hosts and switches."""

    name: str
    node_name_N: tuple[str, ...]
    node_kind_N: IntArray  # NodeKind
    node_tier_N: IntArray  # 0 host, 1 ToR or leaf, 2 aggregation or spine, 3 core; UNKNOWN_TIER
    node_group_N: IntArray  # ToR set, pod or other failure domain; NO_GROUP

    port_name_P: tuple[str, ...]  # unique within its node
    port_node_P: IntArray
    port_peer_P: IntArray  # the same link's other direction
    port_rate_bps_P: IntArray
    port_delay_ps_P: IntArray  # propagation: 5 ns a metre of cable
    port_nic_P: IntArray  # NO_NIC on switches

    nic_host_C: IntArray  # node
    nic_rail_C: IntArray  # NO_RAIL
    nic_ipv4_C: IntArray

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                frozen = np.array(value, dtype=np.int64)
                frozen.setflags(write=False)
                object.__setattr__(self, name, frozen)
        from fabrictune.topology.rules import check_fabric  # here, since the rules are written in terms of a Fabric

        mistakes = check_fabric(self)
        if mistakes:
            raise FabricError(*mistakes)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.node_name_N)

    @property
    def num_ports(self) -> int:
        """P: twice the number of links."""
        return len(self.port_name_P)

    @property
    def num_nics(self) -> int:
        """C."""
        return len(self.nic_host_C)

    def port_label(self, port: int) -> str:
        """Return `node:port` for people."""
        return f"{self.node_name_N[self.port_node_P[port]]}:{self.port_name_P[port]}"

    def link_label(self, port: int) -> str:
        """Return `node:port -> peer:port` for people, in the port's direction."""
        return f"{self.port_label(port)} -> {self.port_label(int(self.port_peer_P[port]))}"

    def nic_label(self, nic: int) -> str:
        """Return the NIC as `host:port` of its first port."""
        return self.port_label(int(np.argmax(self.port_nic_P == nic)))
