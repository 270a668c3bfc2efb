"""Nodes in network namespaces of their own, joined by a bridge in a namespace of the driver's.

Between two nodes traffic is cut by isolating their ports of the bridge: each still reaches the driver and the others.
A node is cut off by taking its port down. Nothing is changed outside the namespaces, all named after the run.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

HUB = "hub"
INTERFACE = "eth0"
CLOSED = ("TIME-WAIT", "FIN-WAIT", "LAST-ACK", "CLOSING")  # by their process; the kernel has their last words


def lack() -> str:
    """Return why namespaces cannot be made here, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    return "" if all(map(shutil.which, ("ip", "bridge", "nsenter"))) else "no ip, bridge or nsenter"


class Network:
    """The driver's namespace with a bridge, and a namespace a node; removed by `close`."""

    def __init__(self, name: str, nodes: Sequence[str]) -> None:
        self._name, self._nodes = name, tuple(nodes)
        self.close()
        try:
            self._make()
        except AssertionError:
            self.close()
            raise

    def address(self, node: str) -> str:
        """Return a node's address, or the driver's."""
        return f"10.77.0.{1 if node == HUB else 10 + self._nodes.index(node)}"

    def entered(self, node: str) -> tuple[str, ...]:
        """Return the words in front of a command that make it run in a node's namespace, or the driver's."""
        return ("nsenter", f"--net=/run/netns/{self._namespace(node)}")

    def cut(self, first: str, second: str) -> None:
        """Cut two nodes from each other."""
        self._isolate((first, second), "on")

    def mend(self, first: str, second: str) -> None:
        """Join two nodes again."""
        self._isolate((first, second), "off")

    def cut_off(self, node: str) -> None:
        """Cut a node from all others and from the driver."""
        self._inside(HUB, "ip", "link", "set", _port(node), "down")

    def sockets(self) -> tuple[str, ...]:
        """Return the sockets, but those that their processes have closed, that are left in the namespaces."""
        found = []
        for node in (HUB, *self._nodes):
            lines = self._inside(node, "ss", "-H", "-a", "-n", "-t", "-u").splitlines()
            found += [f"{node}: {' '.join(line.split())}" for line in lines if not any(map(line.__contains__, CLOSED))]
        return tuple(found)

    def close(self) -> None:
        """Remove the namespaces and all in them."""
        for node in (*self._nodes, HUB):
            if Path("/run/netns", self._namespace(node)).exists():
                self._ip("netns", "delete", self._namespace(node))

    def _make(self) -> None:
        self._ip("netns", "add", self._namespace(HUB))
        self._inside(HUB, "ip", "link", "set", "lo", "up")
        self._inside(HUB, "ip", "link", "add", INTERFACE, "type", "bridge", "forward_delay", "0")
        self._inside(HUB, "ip", "address", "add", f"{self.address(HUB)}/24", "dev", INTERFACE)
        self._inside(HUB, "ip", "link", "set", INTERFACE, "up")
        for node in self._nodes:
            self._join(node)

    def _namespace(self, node: str) -> str:
        return f"{self._name}-{node}"

    def _join(self, node: str) -> None:
        self._ip("netns", "add", self._namespace(node))
        peer = ("peer", "name", INTERFACE, "netns", self._namespace(node))
        self._inside(HUB, "ip", "link", "add", _port(node), "type", "veth", *peer)
        self._inside(HUB, "ip", "link", "set", _port(node), "master", INTERFACE, "up")
        self._inside(node, "ip", "address", "add", f"{self.address(node)}/24", "dev", INTERFACE)
        self._inside(node, "ip", "link", "set", INTERFACE, "up")
        self._inside(node, "ip", "link", "set", "lo", "up")

    def _isolate(self, nodes: Sequence[str], state: str) -> None:
        for node in nodes:
            self._inside(HUB, "bridge", "link", "set", "dev", _port(node), "isolated", state)

    def _inside(self, node: str, *command: str) -> str:
        return _run(*self.entered(node), *command)

    def _ip(self, *words: str) -> None:
        _run("ip", *words)


def _port(node: str) -> str:
    return f"to-{node}"


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
