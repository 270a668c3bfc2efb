"""Choice of a job's hosts by what people call them: names, numbers, schedulers' lists, and switches.

A number counts the hosts with NICs in the fabric's order, from 0. A switch stands for the hosts cabled to it: a ToR
switch for its rack, the switch of a rail for its rail group.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.host_lists import expand_hosts

MAX_GUESSES = 1_000  # names among which the nearest is sought
MAX_MISTAKES = 20


def hosts_with_nics(fabric: Fabric) -> list[int]:
    """Return the hosts that have NICs, in node order."""
    return sorted(set(fabric.nic_host_C.tolist()))


def choose_hosts(fabric: Fabric, names: Sequence[str], *, first_host: str | None = None) -> list[int]:
    """Return the nodes of the hosts that `names` mean, each once, in node order; without names all.

    `first_host` drops those before it. Raises InputError with every name that means none.
    """
    directory = _Directory(fabric)
    hosts = sorted(set(directory.find(names, where="hosts"))) if names else directory.hosts
    if first_host is None:
        return hosts
    (first,) = directory.find([first_host], where="first_host")[:1]
    return [host for host in hosts if host >= first]


class _Directory:
    """The hosts of a fabric by name, by number, and by the switches they are cabled to."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.hosts = hosts_with_nics(fabric)
        self.node_of_name = {name: node for node, name in enumerate(fabric.node_name_N)}
        self.with_nics = set(self.hosts)

    def find(self, names: Iterable[str], *, where: str) -> list[int]:
        """Return the hosts of all names; raises InputError."""
        found: list[int] = []
        mistakes: list[Mistake] = []
        for name in names:
            for entry in [name] if name in self.node_of_name else expand_hosts(name, where=where):
                hosts = self._hosts_of(entry)
                found += hosts
                if not hosts and len(mistakes) < MAX_MISTAKES:
                    mistakes.append(self._mistake(entry, where))
        if mistakes:
            raise InputError(*mistakes)
        return found

    def _hosts_of(self, name: str) -> list[int]:
        node = self.node_of_name.get(name)
        if node is None:
            number = int(name) if name.isdecimal() and len(name) < 10 else len(self.hosts)
            return self.hosts[number : number + 1]
        if self.fabric.node_kind_N[node] == NodeKind.SWITCH:
            return self._cabled_to(node)
        return [node] if node in self.with_nics else []

    def _cabled_to(self, switch: int) -> list[int]:
        fabric = self.fabric
        peers = fabric.port_node_P[fabric.port_peer_P[fabric.port_node_P == switch]].tolist()
        return sorted(self.with_nics.intersection(peers))

    def _mistake(self, name: str, where: str) -> Mistake:
        allowed = f"names of hosts, numbers from 0 to {len(self.hosts) - 1}, switches that hosts are cabled to"
        if name in self.node_of_name:
            is_switch = self.fabric.node_kind_N[self.node_of_name[name]] == NodeKind.SWITCH
            what = "a switch that no host is cabled to" if is_switch else "a host without NIC"
            return Mistake(where=where, found=f"{quote(name)}, {what}", allowed=allowed)
        names = (self.fabric.node_name_N[host] for host in islice(self.hosts, MAX_GUESSES))
        return Mistake(
            where=where,
            found=f"unknown host {quote(name)}",
            allowed=allowed,
            nearest=nearest_name(name, list(names)),
            next_step="`fabrictune topo show FILE --links` lists the links of a fabric",
        )
