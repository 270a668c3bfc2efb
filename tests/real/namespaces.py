"""A fabric built for real: every node a network namespace, every link a veth pair, Linux itself the switch.

Every port of the fabric gets one /32 address and a fixed MAC, all neighbours are permanent, IPv6 is off: so nothing but
what a test sends crosses a link, and the counters of the interfaces are exact. Switches hash the 5-tuple
(`fib_multipath_hash_policy=1`) and answer an expired probe from the port on which it came in, so that a hop names a
link. The equal-cost routes come from a search of their own, not from the package's routing.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address
from itertools import count
from os import geteuid, getpid
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from fabrictune.topology.fabric import NO_NIC, Fabric, NodeKind
from tests.patience import patience

FIRST_PORT_IPV4 = int(IPv4Address("10.255.0.0"))
COMMAND_TIMEOUT_S = 60
_SERIAL = count()
_WRITE_SETTINGS = 'while [ $# -gt 0 ]; do echo "$2" > "/proc/sys/$1" || exit 1; shift 2; done'

Settings = Mapping[str, int]  # "net/ipv4/icmp_ratelimit": 0

SETTINGS: Settings = {
    "net/ipv6/conf/all/disable_ipv6": 1,
    "net/ipv6/conf/default/disable_ipv6": 1,
    "net/ipv4/conf/all/rp_filter": 0,
    "net/ipv4/conf/default/rp_filter": 0,
    "net/ipv4/ip_forward": 1,
    "net/ipv4/icmp_errors_use_inbound_ifaddr": 1,
    "net/ipv4/icmp_ratelimit": 0,
    "net/ipv4/fib_multipath_hash_policy": 1,
}


def require_namespaces() -> None:
    """Skip the test, saying why, where no namespaces can be made."""
    if shutil.which("ip") is None:
        pytest.skip("iproute2 is not installed")
    if geteuid() != 0:
        pytest.skip("network namespaces with fixed addresses need root")
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no network namespaces here: {tried.stderr.strip()}")


@contextmanager
def fabric_of_namespaces(fabric: Fabric, settings: Mapping[str, Settings] | None = None) -> Iterator["NamespaceFabric"]:
    """Give the fabric up and running, `settings` by node on top of SETTINGS; takes it down whatever happens."""
    require_namespaces()
    built = NamespaceFabric(fabric)
    try:
        built.build(settings or {})
        yield built
    finally:
        built.remove()


class NamespaceFabric:
    """Namespaces, links, addresses and routes of one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.prefix = f"ft{getpid()}-{next(_SERIAL)}-"
        has_nic_P = fabric.port_nic_P != NO_NIC
        nic_ipv4_P = fabric.nic_ipv4_C[np.where(has_nic_P, fabric.port_nic_P, 0)]
        self.ipv4_P = np.where(has_nic_P, nic_ipv4_P, FIRST_PORT_IPV4 + np.arange(fabric.num_ports))

    def namespace(self, node: str) -> str:
        """Return the name of a node's namespace."""
        return self.prefix + node

    def command(self, node: str, *words: str) -> list[str]:
        """Return the command that runs `words` inside a node."""
        return ["ip", "netns", "exec", self.namespace(node), *words]

    def run_cli(self, node: str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run `fabrictune` inside a node, in the folder `cwd`."""
        command = self.command(node, sys.executable, "-m", "fabrictune", *map(str, arguments))
        return subprocess.run(
            command,
            cwd=cwd,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=patience(COMMAND_TIMEOUT_S),
            check=False,
        )

    def sent_packets(self, node: str) -> dict[str, int]:
        """Return how many packets each port of a node has sent, as the kernel counts them."""
        listed = _run(["ip", "-n", self.namespace(node), "-json", "-stats", "link", "show"])
        return {link["ifname"]: link["stats64"]["tx"]["packets"] for link in json.loads(listed)}

    def hosts_file(self) -> str:
        """Return the address of every port with its name, as /etc/hosts would."""
        ports = range(self.fabric.num_ports)
        return "".join(f"{_dotted(self.ipv4_P[port])}\t{self.fabric.port_label(port)}\n" for port in ports)

    def shortest_paths(self, source_nic: int, target_nic: int) -> set[tuple[str, ...]]:
        """Return every equal-cost path as the ports through which it enters each node on the way, the target last."""
        fabric = self.fabric
        first, last = (int(np.argmax(fabric.port_nic_P == nic)) for nic in (source_nic, target_nic))
        last_switch = int(fabric.port_node_P[fabric.port_peer_P[last]])
        distance = nx.single_source_shortest_path_length(self._switch_graph(), last_switch)
        paths = [[int(fabric.port_peer_P[first])]]
        for steps in reversed(range(distance[int(fabric.port_node_P[paths[0][0]])])):
            paths = [
                [*path, int(fabric.port_peer_P[port])]
                for path in paths
                for port in np.nonzero(fabric.port_node_P == fabric.port_node_P[path[-1]])[0].tolist()
                if distance.get(int(fabric.port_node_P[fabric.port_peer_P[port]])) == steps
            ]
        return {tuple(fabric.port_label(port) for port in (*path, last)) for path in paths}

    def build(self, settings: Mapping[str, Settings]) -> None:
        """Make everything there is to make."""
        nodes = self.fabric.node_name_N
        _batch([], [f"netns add {self.namespace(node)}" for node in nodes])
        for node in nodes:
            pairs = {**SETTINGS, **settings.get(node, {})}.items()
            _run(self.command(node, "sh", "-c", _WRITE_SETTINGS, "sh", *(str(word) for pair in pairs for word in pair)))
        _batch([], [self._link(port) for port in range(self.fabric.num_ports) if port < self.fabric.port_peer_P[port]])
        routes = self._routes()
        for number, node in enumerate(nodes):
            ports = np.nonzero(self.fabric.port_node_P == number)[0].tolist()
            lines = ["link set lo up", *(line for port in ports for line in self._configure(port)), *routes[number]]
            _batch(["-n", self.namespace(node)], lines)

    def remove(self) -> None:
        """Delete the namespaces that are there, and with them everything in them."""
        there = {line.split()[0] for line in _run(["ip", "netns", "list"]).splitlines() if line}
        names = [self.namespace(node) for node in self.fabric.node_name_N]
        _batch([], [f"netns del {name}" for name in names if name in there])

    def _link(self, port: int) -> str:
        (near, far) = (port, int(self.fabric.port_peer_P[port]))
        place = {end: self.namespace(self.fabric.node_name_N[self.fabric.port_node_P[end]]) for end in (near, far)}
        name = self.fabric.port_name_P
        return (
            f"link add name {name[near]} address {_mac(near)} netns {place[near]} type veth "
            f"peer name {name[far]} address {_mac(far)} netns {place[far]}"
        )

    def _configure(self, port: int) -> list[str]:
        """Return what gives a port its address and its one neighbour."""
        name, peer = self.fabric.port_name_P[port], int(self.fabric.port_peer_P[port])
        return [
            f"address add {_dotted(self.ipv4_P[port])}/32 dev {name}",
            f"link set {name} up",
            f"neighbour replace {_dotted(self.ipv4_P[peer])} lladdr {_mac(peer)} dev {name} nud permanent",
        ]

    def _routes(self) -> list[list[str]]:
        """Return each node's routes: a host's only link, and a switch's shortest ways to every NIC, all of them."""
        fabric = self.fabric
        next_P = fabric.port_node_P[fabric.port_peer_P]
        graph = self._switch_graph()
        routes: list[list[str]] = [[] for _ in range(fabric.num_nodes)]
        for port in np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist():
            tor = int(next_P[port])
            routes[fabric.port_node_P[port]].append(f"route add default {self._way(port)}")
            distance = nx.single_source_shortest_path_length(graph, tor)
            for switch, steps in distance.items():
                nearer = [
                    exit_port
                    for exit_port in np.nonzero(fabric.port_node_P == switch)[0].tolist()
                    if distance.get(int(next_P[exit_port])) == steps - 1
                ] or [int(fabric.port_peer_P[port])]
                ways = " ".join(f"nexthop {self._way(exit_port)}" for exit_port in nearer)
                routes[switch].append(f"route add {_dotted(self.ipv4_P[port])}/32 {ways}")
        return routes

    def _switch_graph(self) -> "nx.Graph[int]":
        next_P = self.fabric.port_node_P[self.fabric.port_peer_P]
        is_switch_N = self.fabric.node_kind_N == NodeKind.SWITCH
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(np.nonzero(is_switch_N)[0].tolist())
        for port in np.nonzero(is_switch_N[self.fabric.port_node_P] & is_switch_N[next_P])[0].tolist():
            graph.add_edge(int(self.fabric.port_node_P[port]), int(next_P[port]))
        return graph

    def _way(self, port: int) -> str:
        peer = int(self.fabric.port_peer_P[port])
        return f"via {_dotted(self.ipv4_P[peer])} dev {self.fabric.port_name_P[port]} onlink"


def _dotted(ipv4: int) -> str:
    return str(IPv4Address(int(ipv4)))


def _mac(port: int) -> str:
    return f"02:00:00:00:{port >> 8:02x}:{port & 0xFF:02x}"


def _batch(options: Sequence[str], lines: Sequence[str]) -> None:
    """Run many `ip` commands in one process; the first that fails ends it."""
    if lines:
        _run(["ip", *options, "-batch", "-"], "\n".join(lines) + "\n")


def _run(command: Sequence[str], stdin: str = "") -> str:
    ran = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=patience(COMMAND_TIMEOUT_S), check=False
    )
    assert ran.returncode == 0, f"{' '.join(command[:6])}: {ran.stderr.strip()}"
    return ran.stdout
