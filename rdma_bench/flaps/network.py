"""Two hosts under one switch, each a network namespace of this machine, and the link that can be taken down.

The switch's port is what goes down, not a host's: the hosts keep their addresses and routes, and learn of it by
silence, as when an optic fails on the far side. Neighbours are permanent, so that no ARP request is needed afterwards.

Source: ip-netns(8), ip-link(8), ss(8); a bridge without spanning tree forwards as soon as a port is up.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.flaps.tcp import MIN_TIMEOUT_NS, timeouts_in

INTERFACE = "nic0"
COMMAND_TIMEOUT_S = 30
FORBIDDEN = ("Operation not permitted", "Permission denied")
WITHOUT_RIGHTS = (
    "run it as root with CAP_SYS_ADMIN and CAP_NET_ADMIN: with sudo on the machine itself, or in a container that has "
    "them (docker run --privileged)"
)
WITHOUT_KERNEL = "use a kernel with namespaces, veth and bridge"
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
        return ["ip", "netns", "exec", self.namespace, *words]


class FlappingNetwork:
    """The two hosts, and the link of the second."""

    def __init__(self, prefix: str) -> None:
        self.switch = f"{prefix}-switch"
        self.hosts = tuple(
            Host(namespace=f"{prefix}-host{number}", address=address) for number, address in enumerate(_ADDRESSES)
        )

    def take_down(self) -> None:
        """Cut the second host off."""
        _run(["ip", "-n", self.switch, "link", "set", "port1", "down"])

    def bring_up(self) -> None:
        """End the cut."""
        _run(["ip", "-n", self.switch, "link", "set", "port1", "up"])

    def retransmission_timeout_ns(self) -> float:
        """Return the longest that any TCP connection between the hosts has now."""
        listings = (_run(host.command("ss", "--tcp", "--info", "--no-header", "--oneline")) for host in self.hosts)
        return max((time_ns for listing in listings for time_ns in timeouts_in(listing)), default=MIN_TIMEOUT_NS)

    def build(self) -> None:
        """Make everything; raises UnavailableError where the kernel cannot."""
        for namespace in (self.switch, *(host.namespace for host in self.hosts)):
            _run(["ip", "netns", "add", namespace])
        _run(["ip", "-n", self.switch, "link", "add", "bridge", "up", "type", "bridge"])
        for number, host in enumerate(self.hosts):
            peer = _ADDRESSES[1 - number], _MACS[1 - number]
            link = f"link add port{number} type veth peer name {INTERFACE} address {_MACS[number]}"
            _batch(self.switch, [f"{link} netns {host.namespace}", f"link set port{number} master bridge up"])
            _batch(
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
        there = _namespaces()
        for namespace in (self.switch, *(host.namespace for host in self.hosts)):
            if namespace in there:
                _run(["ip", "netns", "del", namespace])


@contextmanager
def flapping_network() -> Iterator[FlappingNetwork]:
    """Give the network, and take it down whatever happens; raises UnavailableError where none can be made.

    Networks of processes that were killed are taken down first.
    """
    if shutil.which("ip") is None:
        _refuse("iproute2 is not installed", "apt install iproute2")
    if os.geteuid() != 0:
        _refuse("network namespaces need root", "run it with sudo, on a machine that may")
    network = FlappingNetwork(f"flap{os.getpid()}")
    with HeldSignals() as signals:
        _remove_abandoned()
        try:
            with signals.let_through():
                network.build()
                yield network
        finally:
            network.remove()


def _namespaces() -> set[str]:
    return {line.split()[0] for line in _run(["ip", "netns", "list"]).splitlines() if line}


def _remove_abandoned() -> None:
    """Delete the namespaces of networks whose process is gone and that no other is in."""
    for namespace in _namespaces():
        match = _NAME.fullmatch(namespace)
        if match and not Path("/proc", match[1]).exists() and not _run(["ip", "netns", "pids", namespace]).strip():
            _run(["ip", "netns", "del", namespace])


def _batch(namespace: str, lines: Sequence[str]) -> None:
    """Run several `ip` commands in a namespace; the first that fails ends it."""
    _run(["ip", "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")


def _run(command: Sequence[str], stdin: str = "") -> str:
    ran = subprocess.run(  # noqa: S603  # iproute2, with words of this module
        command, input=stdin, capture_output=True, text=True, timeout=scaled(COMMAND_TIMEOUT_S), check=False
    )
    if ran.returncode:
        is_forbidden = any(text in ran.stderr for text in FORBIDDEN)
        _refuse(f"{' '.join(command)}: {ran.stderr.strip()}", WITHOUT_RIGHTS if is_forbidden else WITHOUT_KERNEL)
    return ran.stdout


def _refuse(found: str, next_step: str) -> NoReturn:
    raise UnavailableError(Mistake(where="network namespaces", found=found, next_step=next_step))
