"""Two hosts under one switch, each a network namespace of this machine, and the link that can be taken down.

The switch's port is what goes down, not a host's: the hosts keep their addresses and routes, and learn of it by
silence, as when an optic fails on the far side. Neighbours are permanent, so that no ARP request is needed afterwards.

Source: ip-netns(8), ip-link(8), ss(8); a bridge without spanning tree forwards as soon as a port is up.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.network_namespaces import (
    inside,
    list_namespaces,
    processes_in,
    remove_namespace,
    require_namespaces,
    run_batch,
    run_tool,
)
from fabrictune.rdma_bench.flaps.tcp import MIN_TIMEOUT_NS, timeouts_in

INTERFACE = "nic0"
_NAME = re.compile(r"flap(\d+)-(?:switch|host\d)")  # with the number of its process
_ADDRESSES = ("192.0.2.1", "192.0.2.2")  # for documentation, RFC 5737
_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


@dataclass(frozen=True, kw_only=True)
class Host:
    """One end."""

    namespace: str
    address: str

    def command(self, *words: str) -> list[str]:
        """Return the command that runs `words` on this host."""
        return inside(self.namespace, *words)


class FlappingNetwork:
    """The two hosts, and the link of the second."""

    def __init__(self, prefix: str) -> None:
        self.switch = f"{prefix}-switch"
        self.hosts = tuple(
            Host(namespace=f"{prefix}-host{number}", address=address) for number, address in enumerate(_ADDRESSES)
        )

    def take_down(self) -> None:
        """Cut the second host off."""
        run_tool(["ip", "-n", self.switch, "link", "set", "port1", "down"])

    def bring_up(self) -> None:
        """End the cut."""
        run_tool(["ip", "-n", self.switch, "link", "set", "port1", "up"])

    def retransmission_timeout_ns(self) -> float:
        """Return the longest that any TCP connection between the hosts has now."""
        listings = (run_tool(host.command("ss", "--tcp", "--info", "--no-header", "--oneline")) for host in self.hosts)
        return max((time_ns for listing in listings for time_ns in timeouts_in(listing)), default=MIN_TIMEOUT_NS)

    def build(self) -> None:
        """Make everything; raises UnavailableError where the kernel cannot."""
        for namespace in (self.switch, *(host.namespace for host in self.hosts)):
            run_tool(["ip", "netns", "add", namespace])
        run_tool(["ip", "-n", self.switch, "link", "add", "bridge", "up", "type", "bridge"])
        for number, host in enumerate(self.hosts):
            peer = _ADDRESSES[1 - number], _MACS[1 - number]
            link = f"link add port{number} type veth peer name {INTERFACE} address {_MACS[number]}"
            run_batch(self.switch, [f"{link} netns {host.namespace}", f"link set port{number} master bridge up"])
            run_batch(
                host.namespace,
                [
                    "link set lo up",
                    f"address add {host.address}/24 dev {INTERFACE}",
                    f"link set {INTERFACE} up",
                    f"neighbour replace {peer[0]} lladdr {peer[1]} dev {INTERFACE} nud permanent",
                ],
            )

    def remove(self) -> None:
        """Delete what is there of it, and with it everything inside."""
        there = list_namespaces()
        for namespace in (self.switch, *(host.namespace for host in self.hosts)):
            if namespace in there:
                remove_namespace(namespace)


@contextmanager
def flapping_network() -> Iterator[FlappingNetwork]:
    """Give the network, and take it down whatever happens; raises UnavailableError where none can be made.

    Networks of processes that were killed are taken down first.
    """
    require_namespaces()
    network = FlappingNetwork(f"flap{os.getpid()}")
    with HeldSignals() as signals:
        _remove_abandoned()
        try:
            with signals.let_through():
                network.build()
                yield network
        finally:
            network.remove()


def _remove_abandoned() -> None:
    """Delete the namespaces of networks whose process is gone and that no other is in."""
    for namespace in list_namespaces():
        match = _NAME.fullmatch(namespace)
        if match and not Path("/proc", match[1]).exists() and not processes_in(namespace):
            remove_namespace(namespace)
