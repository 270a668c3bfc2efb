"""What a testbed is to be: a fabric with rates that this machine can carry, refused where it cannot be built.

All rates are scaled by one factor, so that oversubscription stays what it was. A slash in a port's name, which no
interface can have, becomes a dot. Left out: cable delays, which are
shorter than what the kernel takes to forward a packet.

Shapes: P ports, C NICs.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import numpy as np

from fabrictune.foundation.errors import FabricError, Mistake
from fabrictune.foundation.units import format_rate
from fabrictune.topology.builders.clos import ClosSpec
from fabrictune.topology.fabric import NO_NIC, Fabric, NodeKind

DEFAULT_RATE_BPS = 100_000_000
MIN_RATE_BPS = 1_000_000
MAX_RATE_BPS = 10_000_000_000
MAX_NODES = 256
MAX_LINKS = 4096
MANAGEMENT = IPv4Network("198.18.0.0/16")  # for benchmarks of networks, RFC 2544
MANAGEMENT_PORT = "mgmt0"
_MAX_NAME = 15  # characters of an interface, IFNAMSIZ
_RESERVED = ("lo", MANAGEMENT_PORT)
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
# Two ToRs of four hosts, with an uplink a host: what a small machine trains eight ranks on, and where paths collide.
EIGHT_HOSTS = ClosSpec(
    num_hosts=8,
    hosts_per_tor_set=4,
    nics_per_host=1,
    tiers=2,
    uplinks_per_tor=4,
    downlink_split=1,
    nic_rate_bps=100_000_000_000,
    uplink_rate_bps=100_000_000_000,
)


def plan_testbed(fabric: Fabric, *, rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Return the fabric with its fastest host link at `rate_bps`, other links in proportion; raises FabricError."""
    fabric = replace(fabric, port_name_P=tuple(name.replace("/", ".") for name in fabric.port_name_P))
    mistakes = [*_mistakes(fabric)]
    if mistakes:
        raise FabricError(*mistakes)
    fastest_bps = int(fabric.port_rate_bps_P[fabric.port_nic_P != NO_NIC].max())
    scaled_P = np.maximum(np.rint(fabric.port_rate_bps_P * (rate_bps / fastest_bps)).astype(np.int64), MIN_RATE_BPS)
    note = f"testbed: {format_rate(fastest_bps)} are {format_rate(rate_bps)} here, all links by the same factor"
    return replace(fabric, port_rate_bps_P=scaled_P, notes=(*fabric.notes, note))


def host_names(fabric: Fabric) -> list[str]:
    """Return the names of the hosts, in order."""
    kinds = zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True)
    return [name for name, kind in kinds if kind == NodeKind.HOST]


def management_address(number: int) -> str:
    """Return the address of a host's management port, by its number among hosts."""
    return str(MANAGEMENT.network_address + 1 + number)


def hub_address() -> str:
    """Return the address of the namespace from which the hosts are managed."""
    return str(MANAGEMENT.broadcast_address - 1)


def _mistakes(fabric: Fabric) -> Iterator[Mistake]:
    where = f"fabric {fabric.name!r}"
    sizes = ((fabric.num_nodes, MAX_NODES, "nodes"), (fabric.num_ports // 2, MAX_LINKS, "links"))
    for number, limit, what in sizes:
        if number > limit:
            step = "take a smaller fabric of the same shape"
            yield Mistake(where=where, found=f"{number:,} {what}", allowed=f"up to {limit:,}", next_step=step)
    if not fabric.num_nics:
        yield Mistake(where=where, found="no NICs", allowed="hosts with NICs")
    for name in fabric.node_name_N:
        if not _NAME.fullmatch(name):
            yield Mistake(where=f"{where}: node {name!r}", found="a name no namespace can have", allowed=_NAME.pattern)
    for port in range(fabric.num_ports):
        name = fabric.port_name_P[port]
        if not _NAME.fullmatch(name) or len(name) > _MAX_NAME or name in _RESERVED:
            allowed = f"{_NAME.pattern}, up to {_MAX_NAME} characters, not {' or '.join(_RESERVED)}"
            found = "a name no interface can have"
            yield Mistake(where=f"{where}: port {fabric.port_label(port)}", found=found, allowed=allowed)
    yield from _mistakes_of_nics(fabric, where)


def _mistakes_of_nics(fabric: Fabric, where: str) -> Iterator[Mistake]:
    num_ports_C = np.bincount(fabric.port_nic_P[fabric.port_nic_P != NO_NIC], minlength=fabric.num_nics)
    for nic in np.nonzero(num_ports_C > 1)[0].tolist():
        found = f"a NIC of {num_ports_C[nic]} ports"
        yield Mistake(where=f"{where}: {fabric.nic_label(nic)}", found=found, allowed="NICs of one port")
    is_host_N = fabric.node_kind_N == NodeKind.HOST
    for port in np.nonzero(is_host_N[fabric.port_node_P] & is_host_N[fabric.port_node_P[fabric.port_peer_P]])[0]:
        label = fabric.link_label(int(port))
        yield Mistake(where=f"{where}: {label}", found="a link between two hosts", allowed="hosts joined by switches")
    for nic, ipv4 in enumerate(fabric.nic_ipv4_C.tolist()):
        if IPv4Address(ipv4) in MANAGEMENT:
            found = f"address {IPv4Address(ipv4)}"
            yield Mistake(
                where=f"{where}: {fabric.nic_label(nic)}", found=found, allowed=f"outside {MANAGEMENT}, for management"
            )
