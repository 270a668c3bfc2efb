"""The NICs that a validation sends over: each node's interfaces, and which NIC of the planned fabric each is.

With a planned fabric a node is the host of its name, and an interface a NIC by its port's name or its address. Without
one, NICs are all interfaces but the one that the node is reached at, if there are others; `patterns` name them instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address
from typing import Any

import numpy as np

from fabrictune.fleet.facts.fact import natural
from fabrictune.topology.fabric import NO_RAIL, Fabric, NodeKind

UNKNOWN = -1
TCP_HEADERS, FRAME_BYTES = 52, 38  # IPv4, TCP with time stamps; Ethernet with preamble, check sequence and gap
NOT_NICS = ("docker*", "virbr*", "br-*", "tun*", "tap*", "cni*", "flannel*")


@dataclass(frozen=True, kw_only=True)
class Nic:
    """One end of flows."""

    node: str
    interface: str
    ipv4: str
    rail: int
    rate_bps: float  # of its link; 0 where neither fabric nor driver says it
    mtu: int
    fabric_nic: int = UNKNOWN

    @property
    def label(self) -> str:
        """The NIC as `node:interface`."""
        return f"{self.node}:{self.interface}"

    @property
    def payload_fraction(self) -> float:
        """The share of its link's rate that a TCP flow's bytes can have."""
        return (self.mtu - TCP_HEADERS) / (self.mtu + FRAME_BYTES)


@dataclass(frozen=True, kw_only=True)
class NicList:
    """The NICs of all nodes, by node and rail, and what of the plan is not there."""

    nics: Mapping[str, Sequence[Nic]]
    absent: Sequence[str] = ()  # of the planned fabric, as `node:port`
    strangers: Sequence[str] = ()  # nodes that the planned fabric does not have

    @property
    def rails(self) -> Sequence[int]:
        """All rails, in order."""
        return sorted({nic.rail for own in self.nics.values() for nic in own})

    def on_rail(self, node: str, rail: int) -> Nic | None:
        """Return a node's NIC on a rail, None where it has none."""
        return next((nic for nic in self.nics[node] if nic.rail == rail), None)


def find_nics(machines: Mapping[str, Mapping[str, Any]], fabric: Fabric | None, patterns: Sequence[str]) -> NicList:
    """Return the NICs of the nodes whose machines are described."""
    if fabric is None:
        return NicList(nics={node: tuple(_unplanned(node, machine, patterns)) for node, machine in machines.items()})
    host_of = {
        name.split(".")[0].lower(): number
        for number, name in enumerate(fabric.node_name_N)
        if fabric.node_kind_N[number] == NodeKind.HOST
    }
    nics: dict[str, Sequence[Nic]] = {}
    absent: list[str] = []
    for node, machine in machines.items():
        host = host_of.get(node.split(".")[0].lower())
        if host is not None:
            own = tuple(_planned(node, machine, fabric, host, absent))
            nics[node] = tuple(sorted(own, key=lambda nic: nic.rail))
    strangers = [node for node in machines if node.split(".")[0].lower() not in host_of]
    order = {node: host_of[node.split(".")[0].lower()] for node in nics}
    in_order = {node: nics[node] for node in sorted(nics, key=order.__getitem__)}
    return NicList(nics=in_order, absent=tuple(absent), strangers=tuple(strangers))


def _planned(node: str, machine: Mapping[str, Any], fabric: Fabric, host: int, absent: list[str]) -> Iterator[Nic]:
    """Yield the planned NICs that a node has; the others are added to `absent`."""
    by_name = {one["name"]: one for one in machine["interfaces"]}
    by_address = {one["ipv4"]: one for one in machine["interfaces"]}
    for place, nic in enumerate(np.nonzero(fabric.nic_host_C == host)[0].tolist()):
        ports = np.nonzero(fabric.port_nic_P == nic)[0].tolist()
        names = [fabric.port_name_P[port] for port in ports]
        found = next((by_name[name] for name in names if name in by_name), None)
        found = found or by_address.get(str(IPv4Address(int(fabric.nic_ipv4_C[nic]))))
        rail = int(fabric.nic_rail_C[nic])
        if found is None:
            absent.append(f"{node}:{names[0]}")
            continue
        yield Nic(
            node=node,
            interface=found["name"],
            ipv4=found["ipv4"],
            rail=place if rail == NO_RAIL else rail,
            rate_bps=float(fabric.port_rate_bps_P[ports].sum()),
            mtu=int(found["mtu"]),
            fabric_nic=nic,
        )


def _unplanned(node: str, machine: Mapping[str, Any], patterns: Sequence[str]) -> Iterator[Nic]:
    interfaces = sorted(machine["interfaces"], key=lambda one: natural(one["name"]))
    if patterns:
        chosen = [one for one in interfaces if any(fnmatchcase(one["name"], pattern) for pattern in patterns)]
    else:
        own = [one for one in interfaces if not any(fnmatchcase(one["name"], pattern) for pattern in NOT_NICS)]
        chosen = [one for one in own if one["ipv4"] not in machine["reached_at"]] or own
    for rail, one in enumerate(chosen):
        yield Nic(
            node=node,
            interface=one["name"],
            ipv4=one["ipv4"],
            rail=rail,
            rate_bps=float(one["speed_bps"]),
            mtu=int(one["mtu"]),
        )
