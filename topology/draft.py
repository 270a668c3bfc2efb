"""A fabric in the making: nodes and links are added one by one, and `finish` gives the checked Fabric.

Builders and importers use it, so that the order of ports and NICs is defined in one place: a link's two ports stand in
the order in which links were added, and a host's port becomes a NIC of its own the moment it is cabled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.checks import CheckReport
from fabrictune.topology.fabric import NO_GROUP, NO_NIC, NO_RAIL, UNKNOWN_TIER, Fabric, NodeKind

DEFAULT_RATE_BPS = 100_000_000_000  # of a link whose file gives no rate
DEFAULT_CABLE_MM = 10_000  # of a link whose file gives no length
FIRST_IPV4 = (10 << 24) + 1  # NICs are addressed from 10.0.0.1 upwards, in their order
_UNCHECKED = CheckReport()


@dataclass
class FabricDraft:
    """Columns that grow; indices returned by `add_node` are those of the finished fabric."""

    name: str
    node_name: list[str] = field(default_factory=list)
    node_kind: list[int] = field(default_factory=list)
    node_tier: list[int] = field(default_factory=list)
    node_group: list[int] = field(default_factory=list)
    port_name: list[str] = field(default_factory=list)
    port_node: list[int] = field(default_factory=list)
    port_rate_bps: list[int] = field(default_factory=list)
    port_delay_ps: list[int] = field(default_factory=list)
    port_nic: list[int] = field(default_factory=list)
    nic_host: list[int] = field(default_factory=list)
    nic_rail: list[int] = field(default_factory=list)

    def add_host(self, name: str, *, group: int = NO_GROUP) -> int:
        """Add a host and return its index."""
        return self._add_node(name, NodeKind.HOST, 0, group)

    def add_switch(self, name: str, *, tier: int = UNKNOWN_TIER, group: int = NO_GROUP) -> int:
        """Add a switch and return its index."""
        return self._add_node(name, NodeKind.SWITCH, tier, group)

    def add_link(
        self,
        from_port: tuple[int, str],
        to_port: tuple[int, str],
        *,
        rate_bps: int,
        delay_ps: int,
        rail: int = NO_RAIL,
        nic: int | None = None,
    ) -> None:
        """Join two (node, port name) ends; an end on a host becomes a NIC of `rail`, or the second port of `nic`."""
        for node, name in (from_port, to_port):
            self.port_name.append(name)
            self.port_node.append(node)
            self.port_rate_bps.append(rate_bps)
            self.port_delay_ps.append(delay_ps)
            self.port_nic.append(self._nic_of_end(node, rail, nic))

    def finish(self, *, notes: Sequence[str] = (), checked: CheckReport = _UNCHECKED) -> Fabric:
        """Return the fabric with what to know of its files; raises FabricError with every rule it breaks."""
        num_ports = len(self.port_name)
        return Fabric(
            name=self.name,
            node_name_N=tuple(self.node_name),
            node_kind_N=np.array(self.node_kind, np.int64),
            node_tier_N=np.array(self.node_tier, np.int64),
            node_group_N=np.array(self.node_group, np.int64),
            port_name_P=tuple(self.port_name),
            port_node_P=np.array(self.port_node, np.int64),
            port_peer_P=np.arange(num_ports) ^ 1,  # links are pairs of neighbouring rows
            port_rate_bps_P=np.array(self.port_rate_bps, np.int64),
            port_delay_ps_P=np.array(self.port_delay_ps, np.int64),
            port_nic_P=np.array(self.port_nic, np.int64),
            nic_host_C=np.array(self.nic_host, np.int64),
            nic_rail_C=np.array(self.nic_rail, np.int64),
            nic_ipv4_C=FIRST_IPV4 + np.arange(len(self.nic_host)),
            notes=tuple(notes),
            findings=checked.findings,
            checks=checked.checks,
        )

    def _add_node(self, name: str, kind: NodeKind, tier: int, group: int) -> int:
        self.node_name.append(name)
        self.node_kind.append(kind)
        self.node_tier.append(tier)
        self.node_group.append(group)
        return len(self.node_name) - 1

    def _nic_of_end(self, node: int, rail: int, nic: int | None) -> int:
        if self.node_kind[node] != NodeKind.HOST:
            return NO_NIC
        if nic is not None:
            assert self.nic_host[nic] == node, "a NIC of this host"
            return nic
        self.nic_host.append(node)
        self.nic_rail.append(rail)
        return len(self.nic_host) - 1
