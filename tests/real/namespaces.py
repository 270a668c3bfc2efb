"""A fabric of network namespaces, as tests look into it: its counters, its paths, and commands run in its nodes."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Address
from itertools import count
from os import getpid
from pathlib import Path

import networkx as nx
import pytest

from fabrictune.foundation import network_namespaces
from fabrictune.foundation.errors import UnavailableError
from fabrictune.testbed import wiring
from fabrictune.testbed.wiring import Settings
from fabrictune.topology.fabric import Fabric
from tests.patience import patience

__all__ = ["NamespaceFabric", "Settings", "fabric_of_namespaces", "require_namespaces"]

COMMAND_TIMEOUT_S = 60
_SERIAL = count()


def require_namespaces() -> None:
    """Skip the test, saying why, where no namespaces can be made."""
    try:
        network_namespaces.require_namespaces()
    except UnavailableError as error:
        pytest.skip(str(error))
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no network namespaces here: {tried.stderr.strip()}")


@contextmanager
def fabric_of_namespaces(fabric: Fabric, settings: Mapping[str, Settings] | None = None) -> "Iterator[NamespaceFabric]":
    """Give the fabric up and running, `settings` by node on top of the usual ones; takes it down whatever happens."""
    require_namespaces()
    built = NamespaceFabric(fabric, f"ft{getpid()}-{next(_SERIAL)}-")
    try:
        built.build(settings)
        yield built
    finally:
        built.remove()


class NamespaceFabric(wiring.NamespaceFabric):
    """Namespaces, links, addresses and routes of one fabric, for tests."""

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
        show = ["ip", "-n", self.namespace(node), "-json", "-stats", "link", "show"]
        return {
            link["ifname"]: link["stats64"]["tx"]["packets"] for link in json.loads(network_namespaces.run_tool(show))
        }

    def hosts_file(self) -> str:
        """Return the address of every port with its name, as /etc/hosts would."""
        ports = range(self.fabric.num_ports)
        return "".join(f"{IPv4Address(int(self.ipv4_P[port]))}\t{self.fabric.port_label(port)}\n" for port in ports)

    def shortest_paths(self, source_nic: int, target_nic: int) -> set[tuple[str, ...]]:
        """Return every equal-cost path as the ports through which it enters each node on the way, the target last."""
        fabric = self.fabric
        first, last = map(fabric.first_port, (source_nic, target_nic))
        last_switch = int(fabric.port_node_P[fabric.port_peer_P[last]])
        distance = nx.single_source_shortest_path_length(self.switch_graph, last_switch)
        paths = [[int(fabric.port_peer_P[first])]]
        for steps in reversed(range(distance[int(fabric.port_node_P[paths[0][0]])])):
            paths = [
                [*path, int(fabric.port_peer_P[port])]
                for path in paths
                for port in self.ports_of(int(fabric.port_node_P[path[-1]]))
                if distance.get(int(fabric.port_node_P[fabric.port_peer_P[port]])) == steps
            ]
        return {tuple(fabric.port_label(port) for port in (*path, last)) for path in paths}
