"""InfraGraph infrastructures, as YAML or JSON: devices made of components, instances of them, and edges between.

An instance `leaf` of count 4 is four nodes `leaf.0` to `leaf.3`; the ports of a node are the components that edges
name, `nic.0` or, of a device inside the device, `cx5.1.port.0`. Edges take slices as Python does (`host[0:2]`,
`port[4:]`) and join their two lists one to one, up to the shorter, or many to many. A node is a host if its device has,
or contains, a component of choice `xpu` or `nic`, and a switch if not. Rate and delay are the bandwidth and latency of
the edge's link; where they are missing, or in transfers rather than bits, defaults are filled in and noted.

Source: InfraGraph 3.1 (OpenAPI schema, `Infrastructure`), alone or as the `infrastructure` of a graph response.
Left out: edges inside devices, annotations, and the scheme `ring`, which its own service refuses as well.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import MAX_BYTES, Document, Key, load_json, load_yaml
from fabrictune.foundation.errors import FabricError, Mistake, UnitError, nearest_name, quote
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.units import (
    CABLE_DELAY_PS_PER_MM,
    LINK_RATES,
    MAX_LINK_RATE_BPS,
    format_rate,
    parse_duration_ps,
    parse_rate_bps,
)
from fabrictune.topology.draft import DEFAULT_CABLE_MM, DEFAULT_RATE_BPS
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.importers.cabling import Cable, Cabling, End, the_only

MAX_NODES = 2**18
MAX_LINKS = 2**18
MAX_COUNT = 2**16  # of one component in a device
MAX_DEPTH = 8  # of devices inside devices
HOST_CHOICES = ("xpu", "nic")
LISTS = ("devices", "instances", "edges")
BANDWIDTHS = {"gigabits_per_second": 1, "gigabytes_per_second": 8}  # in Gbps
LATENCIES = ("ms", "us", "ns")

_ELEMENT = re.compile(r"([^\[\]]+)(?:\[(-?\d{0,9})(:(-?\d{0,9}))?(:(-?\d{0,9}))?\])?")

JsonObject = Mapping[str, Any]
Slice = tuple[str, range]  # of an instance or a component: its name, and which numbers


def is_infragraph(path: Path) -> bool:
    """Return whether the file is YAML or JSON with the three lists of an infrastructure."""
    if path.suffix not in (".json", ".yaml", ".yml"):
        return False
    content = read_head(path, MAX_BYTES)
    return all(name.encode() in content for name in (*LISTS, "components"))


def load_infragraph(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read one infrastructure; raises InputError with every mistake in it."""
    path = the_only(paths)
    document = load_json(path) if path.suffix == ".json" else load_yaml(path)
    return _Reader(document, default_rate_bps).read()


@dataclass(frozen=True, kw_only=True)
class _Link:
    """Properties of an edge's link; None where they are not given."""

    rate_bps: int | None
    delay_ps: int | None


class _Reader:
    """Reads one document into a Cabling."""

    def __init__(self, document: Document, default_rate_bps: int) -> None:
        self.document = document
        self.default_rate_bps = default_rate_bps
        tree = document.tree if isinstance(document.tree, dict) else {}
        inner = tree.get("infrastructure")
        self.keys: tuple[Key, ...] = ("infrastructure",) if isinstance(inner, dict) else ()
        self.tree: JsonObject = inner if isinstance(inner, dict) else tree
        self.cabling = Cabling(str(self.tree.get("name") or document.path.name.split(".")[0]))
        self.num_default_rates = 0
        self.num_default_delays = 0
        self.num_links = 0

    def read(self) -> Fabric:
        self.components = {name: self._components(row, device) for name, row, device in self._named("devices")}
        self.links = {name: self._link(row, link) for name, row, link in self._named("links")}
        self.device_of: dict[str, str] = {}
        self.count_of: dict[str, int] = {}
        for name, row, instance in self._named("instances"):
            self._read_instance(name, row, instance)
        self._raise_any()  # edges would tell of the same mistakes again
        for row, edge in enumerate(self._list("edges")):
            self._read_edge(row, edge)
        if self.num_default_rates:
            rate = format_rate(self.default_rate_bps)
            self.cabling.notes.append(f"{self.num_default_rates} links have no bandwidth; assuming {rate}")
        if self.num_default_delays:
            metres = DEFAULT_CABLE_MM // 1000
            self.cabling.notes.append(f"links without a latency, taken as {metres} m: {self.num_default_delays}")
        return self.cabling.finish()

    def _components(self, row: int, device: JsonObject) -> dict[str, tuple[int, str]]:
        """Return count and choice of each component of a device."""
        components: dict[str, tuple[int, str]] = {}
        inner = device.get("components")
        for place, component in enumerate(inner if isinstance(inner, list) else []):
            keys = ("devices", row, "components", place)
            name = component.get("name") if isinstance(component, dict) else None
            count = component.get("count") if isinstance(component, dict) else None
            if not isinstance(name, str) or type(count) is not int or not 0 <= count <= MAX_COUNT:
                self._mistake("no component", f"a name, a count of at most {MAX_COUNT} and a choice", *keys)
            else:
                components[name] = (count, str(component.get("choice")))
        return components

    def _link(self, row: int, link: JsonObject) -> _Link:
        physical = _section(link, "physical")
        bandwidth, latency = _section(physical, "bandwidth"), _section(physical, "latency")
        rate_bps = delay_ps = None
        try:
            for unit, factor in BANDWIDTHS.items():
                if unit in bandwidth:
                    where = self._where("links", row, "physical", "bandwidth", unit)
                    rate_bps = factor * parse_rate_bps(f"{bandwidth[unit]} Gbps", where=where)
                    if rate_bps > MAX_LINK_RATE_BPS:
                        found = f"{quote(str(bandwidth[unit]))} {unit}: too large a rate"
                        self.cabling.add_mistakes(Mistake(where=where, found=found, allowed=LINK_RATES))
                        rate_bps = None
            for unit in LATENCIES:
                if unit in latency:
                    where = self._where("links", row, "physical", "latency", unit)
                    delay_ps = parse_duration_ps(f"{latency[unit]} {unit}", where=where)
        except UnitError as error:
            self.cabling.add_mistakes(*error.mistakes)
        return _Link(rate_bps=rate_bps, delay_ps=delay_ps)

    def _read_instance(self, name: str, row: int, instance: JsonObject) -> None:
        device, count = instance.get("device"), instance.get("count")
        if not isinstance(device, str) or device not in self.components:
            nearest = nearest_name(str(device), self.components)
            found = f"the device {quote(str(device))}, which does not exist"
            self._mistake(found, "a name in devices", "instances", row, "device", nearest=nearest)
        elif type(count) is not int or not 0 <= count <= MAX_NODES - len(self.cabling.nodes):
            self._mistake(quote(str(count)), f"a count, at most {MAX_NODES} in all", "instances", row, "count")
        else:
            self.device_of[name], self.count_of[name] = device, count
            kind = NodeKind.HOST if self._is_host(device, set()) else NodeKind.SWITCH
            where = self._where("instances", row)
            for number in range(count):
                self.cabling.add_node(f"{name}.{number}", kind, where=where)

    def _is_host(self, device: str, seen: set[str]) -> bool:
        """Return whether a device, or one inside it, has a component that hosts have."""
        seen.add(device)
        return any(
            choice in HOST_CHOICES
            or (choice == "device" and inner in self.components and inner not in seen and self._is_host(inner, seen))
            for inner, (_, choice) in self.components[device].items()
        )

    def _read_edge(self, row: int, edge: Any) -> None:
        ends = [self._endpoint(row, edge, side) for side in ("ep1", "ep2")]
        scheme = _section(edge).get("scheme")
        link = self.links.get(str(_section(edge).get("link")))
        if scheme not in ("one2one", "many2many"):
            self._mistake(quote(str(scheme)), "one2one or many2many", "edges", row, "scheme")
        elif link is None:
            found = f"the link {quote(str(_section(edge).get('link')))}, which does not exist"
            self._mistake(found, "a name in links", "edges", row, "link")
        elif ends[0] and ends[1]:
            self._join(row, ends[0], ends[1], link, is_mesh=scheme == "many2many")

    def _join(self, row: int, first: list[Slice], second: list[Slice], link: _Link, *, is_mesh: bool) -> None:
        """Cable everything that two endpoints name: each with each, or in pairs up to the shorter's last."""
        sizes = [prod(len(numbers) for _, numbers in end) for end in (first, second)]
        if 0 in sizes:
            return
        self.num_links += prod(sizes) if is_mesh else min(sizes)
        if self.num_links > MAX_LINKS:
            self._mistake("more links than can be used", f"{MAX_LINKS} in all", "edges", row)
            self._raise_any()
        pairs = product(_ends(first), _ends(second)) if is_mesh else zip(_ends(first), _ends(second), strict=False)
        self._add_cables(pairs, link, self._where("edges", row))

    def _endpoint(self, row: int, edge: Any, side: str) -> list[Slice]:
        """Return what one end of an edge names: slices of an instance and of the components in it; [] for a mistake."""
        end = _section(edge, side)
        keys = ("edges", row, side)
        instance, component = end.get("instance"), end.get("component")
        if not isinstance(instance, str) or not isinstance(component, str) or component.count(".") >= MAX_DEPTH:
            self._mistake("no endpoint", f"an instance, and a component at most {MAX_DEPTH} devices deep", *keys)
            return []
        name = instance.partition("[")[0]
        if name not in self.device_of:
            found = f"the instance {quote(name)}, which does not exist"
            nearest = nearest_name(name, self.device_of)
            self._mistake(found, "a name in instances", *keys, "instance", nearest=nearest)
            return []
        slices = [self._slice(instance, self.count_of[name], *keys, "instance")]
        device = self.device_of[name]
        for element in component.split("."):
            known = self.components.get(device, {})
            device = element.partition("[")[0]
            if device not in known:
                found = f"the component {quote(device)}, which does not exist"
                self._mistake(
                    found, "a component of the device", *keys, "component", nearest=nearest_name(device, known)
                )
                return []
            slices.append(self._slice(element, known[device][0], *keys, "component"))
        return [part for part in slices if part is not None] if None not in slices else []

    def _slice(self, element: str, count: int, *keys: Key) -> Slice | None:
        """Return the numbers that `name[slice]` takes of `count`; None for a mistake."""
        match = _ELEMENT.fullmatch(element)
        if match is None:
            self._mistake(quote(element), "a name, and perhaps a slice such as [0:2]", *keys)
            return None
        name, start, stop, step = match[1], match[2], match[4], match[6]
        if start and match[3] is None:
            number = int(start) + count * start.startswith("-") if start != "-" else count
            if not 0 <= number < count:
                self._mistake(quote(element), f"a number below {count}", *keys)
                return None
            return name, range(number, number + 1)
        bounds = [None if text in (None, "", "-") else int(text) for text in (start, stop, step)]
        if bounds[2] == 0:
            self._mistake(quote(element), "a step that is not 0", *keys)
            return None
        return name, range(count)[slice(*bounds)]

    def _add_cables(self, pairs: Iterable[tuple[End, End]], link: _Link, where: str) -> None:
        for first, second in pairs:
            if first == second:  # of a slice joined to itself
                continue
            self.num_default_rates += link.rate_bps is None
            self.num_default_delays += link.delay_ps is None
            rate_bps = self.default_rate_bps if link.rate_bps is None else link.rate_bps
            delay_ps = DEFAULT_CABLE_MM * CABLE_DELAY_PS_PER_MM if link.delay_ps is None else link.delay_ps
            self.cabling.cables.append(Cable(ends=(first, second), rate_bps=rate_bps, delay_ps=delay_ps, where=where))

    def _list(self, key: str) -> list[Any]:
        value = self.tree.get(key, [])
        if isinstance(value, list):
            return value
        self._mistake("not a list", "a list", key)
        return []

    def _named(self, key: str) -> Iterator[tuple[str, int, JsonObject]]:
        """Yield name, row and entry of a list whose entries have names of their own."""
        seen: set[str] = set()
        for row, entry in enumerate(self._list(key)):
            name = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(name, str) or name in seen:
                self._mistake(f"the name {quote(str(name))}", "a name of its own", key, row)
            else:
                seen.add(name)
                yield name, row, entry

    def _where(self, *keys: Key) -> str:
        return self.document.where(*self.keys, *keys)

    def _mistake(self, found: str, allowed: str, *keys: Key, nearest: str = "") -> None:
        self.cabling.add_mistakes(Mistake(where=self._where(*keys), found=found, allowed=allowed, nearest=nearest))

    def _raise_any(self) -> None:
        if self.cabling.mistakes:
            raise FabricError(*self.cabling.mistakes)


def _ends(slices: Sequence[Slice]) -> Iterator[End]:
    """Yield node and port of everything that an endpoint names, in the order of its slices."""
    for numbers in product(*(taken for _, taken in slices)):
        instance, *components = (f"{name}.{number}" for (name, _), number in zip(slices, numbers, strict=True))
        yield instance, ".".join(components)


def _section(value: Any, *keys: str) -> JsonObject:
    """Return the mapping at the end of a path of keys, empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
