"""A fact: one value of a node or of a device on it, and where it was read."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

Value = str | float
Device = tuple[str, str]  # node and device

HOST, SWITCH = "host", "switch"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One value."""

    node: str
    device: str  # interface, RDMA device or port; "" for the node itself
    name: str  # "nic.mtu"
    value: Value
    where: str
    pointer: str = ""  # RFC 6901, of a value in a switch's configuration

    @property
    def entity(self) -> str:
        """What it is about: `gpu01 eth0`."""
        return f"{self.node} {self.device}".strip()


@dataclass(frozen=True, kw_only=True)
class Link:
    """A NIC's port and the switch port at its other end, as LLDP or the switch's configuration says."""

    host: Device
    switch: Device
    where: str


@dataclass(frozen=True, kw_only=True)
class FleetFacts:
    """The facts of all nodes, their links, and what could not be read of each."""

    facts: tuple[Fact, ...]
    links: tuple[Link, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)  # HOST or SWITCH by node
    unread: tuple[tuple[str, str, str], ...] = ()  # node, file or command, and why

    def named(self, name: str) -> Iterator[Fact]:
        """Yield the facts of a name, or of a family of names that ends in `*`."""
        if not name.endswith("*"):
            yield from self._by_name.get(name, ())
            return
        for known, facts in self._by_name.items():
            if known.startswith(name[:-1]):
                yield from facts

    def of(self, name: str, device: Device) -> Fact | None:
        """Return the fact of a name about a device, or about its node where the device has none."""
        return self._by_key.get((name, *device)) or self._by_key.get((name, device[0], ""))

    def other_end(self, device: Device) -> Device | None:
        """Return the device at the other end of a link."""
        return self._ends.get(device)

    def rail_of(self, device: Device) -> int | None:
        """Return the number of a NIC among those of its host that have links, None for other devices."""
        return self._rails.get(device)

    @cached_property
    def _by_name(self) -> Mapping[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            found.setdefault(fact.name, []).append(fact)
        return found

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, str, str], Fact]:
        return {(fact.name, fact.node, fact.device): fact for fact in self.facts}

    @cached_property
    def _ends(self) -> Mapping[Device, Device]:
        ends: dict[Device, Device] = {}
        for link in self.links:
            ends[link.host], ends[link.switch] = link.switch, link.host
        return ends

    @cached_property
    def _rails(self) -> Mapping[Device, int]:
        of_node: dict[str, list[str]] = {}
        for fact in self.named("rdma.state"):
            of_node.setdefault(fact.node, []).append(fact.device)
        return {
            (node, device): rail
            for node, devices in of_node.items()
            for rail, device in enumerate(sorted(devices, key=natural))
        }


def number_of(value: Value) -> float | None:
    """Return a value as a number, None for a text that is none."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return value if math.isfinite(value) else None


def text_of(value: Value) -> str:
    """Return a value as text: a whole number without a point."""
    return value if isinstance(value, str) else f"{value:.12g}"


def natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts `eth10` behind `eth9`."""
    return [(int(piece[:18]), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", text)]


def numbers_text(numbers: Iterable[int]) -> str:
    """Return numbers as `3,4`; "none" for none."""
    return ",".join(map(str, sorted(numbers))) or "none"
