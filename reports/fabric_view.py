"""Fabric of a record: nodes, ports and the classes of links between tiers.

A *link class* is a direction between two tiers, such as "ToR → spine": ports of one class do the same work, so their
loads may be compared with one another.

Shapes: N nodes that have ports, P ports, C NICs, K link classes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.records import Columns
from fabrictune.reports.selection import select
from fabrictune.topology.fabric import NO_NIC, NodeKind

FABRIC = select(
    "fabric",
    "port",
    "node",
    "node_name",
    "node_kind",
    "tier",
    "group",
    "port_name",
    "peer_port",
    "rate_bps",
    "nic",
    "rail",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FabricView:
    """Nodes and directed ports. Nodes without a port are not in a record and have no number here."""

    node_name_N: tuple[str, ...]
    is_host_N: BoolArray
    node_tier_N: IntArray
    node_group_N: IntArray
    port_name_P: tuple[str, ...]
    port_node_P: IntArray
    port_peer_P: IntArray
    port_rate_bps_P: IntArray
    port_nic_P: IntArray
    port_rail_P: IntArray

    @classmethod
    def from_table(cls, table: Columns) -> Self:
        """Build from the checked columns of a record's table `fabric`; raises RecordError."""
        order_P = np.argsort(table["port"], kind="stable")
        port_P = {name: column[order_P] for name, column in table.items()}
        _check_rules(port_P)
        _, first_N, node_P = np.unique(port_P["node"], return_index=True, return_inverse=True)
        return cls(
            node_name_N=tuple(str(name) for name in port_P["node_name"][first_N]),
            is_host_N=np.asarray(port_P["node_kind"][first_N] == NodeKind.HOST.name.lower()),
            node_tier_N=port_P["tier"][first_N],
            node_group_N=port_P["group"][first_N],
            port_name_P=tuple(str(name) for name in port_P["port_name"]),
            port_node_P=node_P.astype(np.int64),
            port_peer_P=port_P["peer_port"],
            port_rate_bps_P=port_P["rate_bps"],
            port_nic_P=port_P["nic"],
            port_rail_P=port_P["rail"],
        )

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
        return int(self.port_nic_P.max()) + 1

    @cached_property
    def peer_node_P(self) -> IntArray:
        """Node at the other end of each port's link."""
        return self.port_node_P[self.port_peer_P]

    @cached_property
    def compared_ports(self) -> IntArray:
        """Ports of the links between switches, which ECMP chooses among; every port of a fabric without such links."""
        touches_host_P = self.is_host_N[self.port_node_P] | self.is_host_N[self.peer_node_P]
        return np.nonzero(~touches_host_P)[0] if not touches_host_P.all() else np.arange(self.num_ports)

    @cached_property
    def nic_port_C(self) -> IntArray:
        """First port of each NIC, or -1."""
        first_C = np.full(self.num_nics, -1, np.int64)
        ports = np.nonzero(self.port_nic_P != NO_NIC)[0][::-1]
        first_C[self.port_nic_P[ports]] = ports
        return first_C

    @cached_property
    def port_number(self) -> dict[str, int]:
        """Number of each port by its label, `node:port`."""
        return {self._port_label(port): port for port in range(self.num_ports)}

    def ports_of_node(self, name: str) -> tuple[int, ...]:
        """Return the ports of the node of a name, none where there is no such node."""
        if name not in self.node_name_N:
            return ()
        ports: list[int] = np.flatnonzero(self.port_node_P == self.node_name_N.index(name)).tolist()
        return tuple(ports)

    def link_label(self, port: int) -> str:
        """Return `node:port → node:port` in the port's direction."""
        return f"{self._port_label(port)} → {self._port_label(int(self.port_peer_P[port]))}"

    def nic_label(self, nic: int) -> str:
        """Return the NIC as `host:port` of its first port."""
        port = int(self.nic_port_C[nic])
        return self._port_label(port) if port >= 0 else f"NIC {nic}"

    def tier_name(self, tier: int) -> str:
        """Return what the field calls a tier in a fabric of this height."""
        names = {0: "host", 1: "ToR", 2: "aggregation", 3: "core"}
        if int(self.node_tier_N.max()) == 2:
            names[2] = "spine"
        return names.get(tier, "switch")

    def link_classes(self) -> dict[str, IntArray]:
        """Return the ports of each link class, classes in the order in which a packet climbs and descends."""
        tier_P, peer_tier_P = self.node_tier_N[self.port_node_P], self.node_tier_N[self.peer_node_P]
        pairs = {(int(a), int(b)) for a, b in np.unique(np.stack([tier_P, peer_tier_P], axis=1), axis=0)}
        classes: dict[str, IntArray] = {}
        for tier, peer_tier in sorted(pairs, key=_climb_then_descend):
            name = f"{self.tier_name(tier)} → {self.tier_name(peer_tier)}"
            ports = np.nonzero((tier_P == tier) & (peer_tier_P == peer_tier))[0]
            classes[name] = np.concatenate([classes[name], ports]) if name in classes else ports
        return classes

    def _port_label(self, port: int) -> str:
        return f"{self.node_name_N[self.port_node_P[port]]}:{self.port_name_P[port]}"


def _climb_then_descend(tiers: tuple[int, int]) -> tuple[int, int]:
    tier, peer_tier = tiers
    if tier < peer_tier:
        return 0, tier
    return (1, tier) if tier == peer_tier else (2, -tier)


def _check_rules(port_P: Columns) -> None:
    """Raise RecordError where the table cannot be a fabric."""
    num_ports = len(port_P["port"])
    if num_ports == 0 or (port_P["port"] != np.arange(num_ports)).any():
        _refuse("port", "not every port from 0 exactly once", "0, 1, 2, ... without gaps")
    peer_P = port_P["peer_port"]
    if not ((peer_P >= 0) & (peer_P < num_ports)).all() or (peer_P[peer_P] != np.arange(num_ports)).any():
        _refuse("peer_port", "a port whose peer does not point back", "the same link's other direction")
    if not ((port_P["nic"] >= NO_NIC) & (port_P["nic"] < num_ports)).all():
        _refuse("nic", "a NIC number out of range", f"{NO_NIC} on switches, else below the number of ports")
    if (port_P["rate_bps"] <= 0).any():
        _refuse("rate_bps", "a rate that is not positive", "bits a second")


def _refuse(column: str, found: str, allowed: str) -> None:
    raise RecordError(Mistake(where=f"fabric.{column}", found=found, allowed=allowed))
