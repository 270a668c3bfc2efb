"""A fabric built for real: every node a network namespace, every link a veth pair, Linux itself the switch.

Every port of the fabric has one /32 address and a fixed MAC, all neighbours are permanent, IPv6 is off: so nothing but
what is sent crosses a link, and the counters of the interfaces are exact. Switches hash the 5-tuple
(`fib_multipath_hash_policy=3`; by policy 1 the kernel takes the hash that the sending socket drew at random, which veth
pairs hand on, instead of the packet's fields) and answer an expired probe from the port on which it came in, so that a
hop names a link. The equal-cost routes come from a search of their own, not from the package's routing. Packets leave a
host as they cross the wire, one by one (`gso_max_segs 1`), so that each has its headers in the counters. A host of
several NICs sends to a rail from its own NIC of that rail, and answers from the NIC that was asked.

Source: ip-route(8), ip-rule(8); Linux, `Documentation/networking/ip-sysctl.rst`.

Shapes: N nodes, P ports, C NICs.
"""

from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address

import networkx as nx
import numpy as np

from fabrictune.foundation.network_namespaces import (
    inside,
    list_namespaces,
    remove_namespace,
    run_batch,
    run_tool,
)
from fabrictune.topology.fabric import NO_NIC, Fabric, NodeKind

FIRST_PORT_IPV4 = int(IPv4Address("10.255.0.0"))
MTU_BYTES = 9000
_FIRST_TABLE = 100  # of a host's routes by source address
_WRITE_SETTINGS = 'while [ $# -gt 0 ]; do echo "$2" > "/proc/sys/$1" || exit 1; shift 2; done'

Settings = Mapping[str, int | str]  # "net/ipv4/icmp_ratelimit": 0

SETTINGS: Settings = {
    "net/ipv6/conf/all/disable_ipv6": 1,
    "net/ipv6/conf/default/disable_ipv6": 1,
    "net/ipv4/conf/all/rp_filter": 0,
    "net/ipv4/conf/default/rp_filter": 0,
    "net/ipv4/ip_forward": 1,
    "net/ipv4/icmp_errors_use_inbound_ifaddr": 1,
    "net/ipv4/icmp_ratelimit": 0,
    "net/ipv4/fib_multipath_hash_fields": 0x37,  # addresses, protocol, ports
    "net/ipv4/fib_multipath_hash_policy": 3,
}


class NamespaceFabric:
    """Namespaces, links, addresses and routes of one fabric, all named after `prefix`."""

    def __init__(self, fabric: Fabric, prefix: str) -> None:
        self.fabric, self.prefix = fabric, prefix
        has_nic_P = fabric.port_nic_P != NO_NIC
        nic_ipv4_P = fabric.nic_ipv4_C[np.where(has_nic_P, fabric.port_nic_P, 0)]
        self.ipv4_P = np.where(has_nic_P, nic_ipv4_P, FIRST_PORT_IPV4 + np.arange(fabric.num_ports))

    def namespace(self, node: str) -> str:
        """Return the name of a node's namespace."""
        return self.prefix + node

    def command(self, node: str, *words: str) -> list[str]:
        """Return the command that runs `words` inside a node."""
        return inside(self.namespace(node), *words)

    def ports_of(self, node: int) -> list[int]:
        """Return the ports of a node."""
        ports: list[int] = np.nonzero(self.fabric.port_node_P == node)[0].tolist()
        return ports

    @cached_property
    def switch_graph(self) -> "nx.Graph[int]":
        """Switches, joined where a link joins them."""
        next_P = self.fabric.port_node_P[self.fabric.port_peer_P]
        is_switch_N = self.fabric.node_kind_N == NodeKind.SWITCH
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(np.nonzero(is_switch_N)[0].tolist())
        for port in np.nonzero(is_switch_N[self.fabric.port_node_P] & is_switch_N[next_P])[0].tolist():
            graph.add_edge(int(self.fabric.port_node_P[port]), int(next_P[port]))
        return graph

    def build(self, settings: Mapping[str, Settings] | None = None) -> None:
        """Make everything there is to make, with `settings` by node on top of SETTINGS; raises UnavailableError."""
        nodes = self.fabric.node_name_N
        run_batch("", [f"netns add {self.namespace(node)}" for node in nodes])
        for node in nodes:
            pairs = {**SETTINGS, **(settings or {}).get(node, {})}.items()
            words = (str(word) for pair in pairs for word in pair)
            run_tool(self.command(node, "sh", "-c", _WRITE_SETTINGS, "sh", *words))
        run_batch("", [self._link(port) for port in range(self.fabric.num_ports) if port < self._peer(port)])
        for number, node in enumerate(nodes):
            ports = (line for port in self.ports_of(number) for line in self._configure(port))
            run_batch(self.namespace(node), ["link set lo up", *ports, *self._routes[number]])

    def restore_routes(self, node: int) -> None:
        """Make again what the kernel forgot of a node's routes and neighbours when a port of it was down."""
        neighbours = [self._neighbour(port) for port in self.ports_of(node)]
        routes = [line.replace("route add", "route replace") for line in self._routes[node] if line.startswith("route")]
        run_batch(self.namespace(self.fabric.node_name_N[node]), [*neighbours, *routes])

    def remove(self) -> None:
        """Delete the namespaces that are there, and with them everything in them."""
        there = list_namespaces()
        for name in map(self.namespace, self.fabric.node_name_N):
            if name in there:
                remove_namespace(name)

    def _link(self, port: int) -> str:
        near, far = port, self._peer(port)
        place = {end: self.namespace(self.fabric.node_name_N[self.fabric.port_node_P[end]]) for end in (near, far)}
        name = self.fabric.port_name_P
        return (
            f"link add name {name[near]} address {_mac(near)} netns {place[near]} type veth "
            f"peer name {name[far]} address {_mac(far)} netns {place[far]}"
        )

    def _configure(self, port: int) -> list[str]:
        """Return what gives a port its address and its one neighbour."""
        name = self.fabric.port_name_P[port]
        return [
            f"address add {_dotted(self.ipv4_P[port])}/32 dev {name}",
            f"link set {name} mtu {MTU_BYTES} gso_max_segs 1 up",
            self._neighbour(port),
        ]

    def _neighbour(self, port: int) -> str:
        name, peer = self.fabric.port_name_P[port], self._peer(port)
        return f"neighbour replace {_dotted(self.ipv4_P[peer])} lladdr {_mac(peer)} dev {name} nud permanent"

    @cached_property
    def _routes(self) -> list[list[str]]:
        """Return each node's routes: a host's by rail, and a switch's shortest ways to every NIC, all of them."""
        fabric = self.fabric
        next_P = fabric.port_node_P[fabric.port_peer_P]
        graph = self.switch_graph
        routes: list[list[str]] = [[] for _ in range(fabric.num_nodes)]
        for port in np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist():
            routes[fabric.port_node_P[port]] += self._host_routes(port)
            distance = nx.single_source_shortest_path_length(graph, int(next_P[port]))
            for switch, steps in distance.items():
                nearer = [
                    exit_port
                    for exit_port in self.ports_of(switch)
                    if distance.get(int(next_P[exit_port])) == steps - 1
                ] or [self._peer(port)]
                ways = " ".join(f"nexthop {self._way(exit_port)}" for exit_port in nearer)
                routes[switch].append(f"route add {_dotted(self.ipv4_P[port])}/32 {ways}")
        return routes

    def _host_routes(self, port: int) -> list[str]:
        """Return the routes by one port of a host: its first is the way to everywhere, others lead to their rail."""
        fabric, own = self.fabric, self.ports_of(int(self.fabric.port_node_P[port]))
        way, address = f"{self._way(port)} src {_dotted(self.ipv4_P[port])}", _dotted(self.ipv4_P[port])
        if len(own) == 1:
            return [f"route add default {way}"]
        table = _FIRST_TABLE + own.index(port)
        lines = [f"rule add from {address} lookup {table}", f"route add default {way} table {table}"]
        if port == own[0]:
            return [*lines, f"route add default {way}"]
        rail_C = fabric.nic_rail_C
        nic = int(fabric.port_nic_P[port])
        others = np.nonzero((rail_C == rail_C[nic]) & (fabric.nic_host_C != fabric.nic_host_C[nic]))[0]
        return [*lines, *(f"route add {_dotted(fabric.nic_ipv4_C[other])}/32 {way}" for other in others)]

    def _peer(self, port: int) -> int:
        return int(self.fabric.port_peer_P[port])

    def _way(self, port: int) -> str:
        return f"via {_dotted(self.ipv4_P[self._peer(port)])} dev {self.fabric.port_name_P[port]} onlink"


def _dotted(ipv4: int) -> str:
    return str(IPv4Address(int(ipv4)))


def _mac(port: int) -> str:
    return f"02:00:00:00:{port >> 8:02x}:{port & 0xFF:02x}"
