"""Links between hosts and switches: what LLDP hears on either side, and what switches' configurations list.

A link is known where one side names the other and its port, or the host's only link to that switch is meant. LLDP goes
before DEVICE_NEIGHBOR, since it says what is plugged in. Names are compared without their domain.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fabrictune.fleet.collect.node_reading import NodeReading, Section
from fabrictune.fleet.facts.fact import HOST, SWITCH, Device, Link
from fabrictune.fleet.facts.sonic import switch_neighbours
from fabrictune.foundation.documents import parse_json
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.lldpctl import Neighbour, json_interfaces, neighbours_of

LLDP = "lldpctl -f json0"


def find_links(readings: Sequence[NodeReading], roles: Mapping[str, str]) -> tuple[Link, ...]:
    """Return the links between hosts and switches that were read, each once."""
    short = {_short(name): name for name in roles}
    links: dict[Device, Link] = {}
    for reading in readings:
        for heard in lldp_neighbours(reading):
            _add(links, roles, short, reading.name, heard.local_port, heard.chassis.name, heard.port, heard.where)
    for reading in readings:
        if roles[reading.name] == SWITCH:
            try:
                rows = list(switch_neighbours(reading))
            except FabrictuneError:
                continue  # said where the configuration itself is read
            for port, name, far_port, where in rows:
                _add(links, roles, short, reading.name, port, name, far_port, where)
    return tuple(links.values())


def lldp_neighbours(reading: NodeReading) -> Iterator[Neighbour]:
    """Yield what a node hears; an output that cannot be read gives nothing."""
    section = next((one for one in reading.sections if one.name == LLDP), None)
    if section is not None and section.lines:
        yield from _heard(reading, section)


def switch_pairs(readings: Sequence[NodeReading], roles: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the pairs of neighbouring switches that were read, with the place that says so."""
    short = {_short(name): name for name in roles}
    seen: set[frozenset[str]] = set()
    for reading in readings:
        if roles[reading.name] != SWITCH:
            continue
        try:
            rows = list(switch_neighbours(reading))
        except FabrictuneError:
            continue
        for _, name, _, where in rows:
            other = short.get(_short(name), "")
            pair = frozenset((reading.name, other))
            if roles.get(other) == SWITCH and len(pair) == 2 and pair not in seen:
                seen.add(pair)
                yield reading.name, other, where


def _heard(reading: NodeReading, section: Section) -> Iterator[Neighbour]:
    cabling = Cabling("lldp")
    try:
        document = parse_json(section.text, Path(f"{reading.name}: {LLDP}"))
        if isinstance(document.tree, dict):
            yield from neighbours_of(json_interfaces(document, cabling), cabling)
    except FabrictuneError:
        return


def _add(
    links: dict[Device, Link],
    roles: Mapping[str, str],
    short: Mapping[str, str],
    node: str,
    port: str,
    far_name: str,
    far_port: str,
    where: str,
) -> None:
    far_node = short.get(_short(far_name), "")
    if not far_node or not port or not far_port or roles[far_node] == roles[node]:
        return
    near, far = (node, port), (far_node, far_port)
    host, switch = (near, far) if roles[node] == HOST else (far, near)
    links.setdefault(host, Link(host=host, switch=switch, where=where))


def _short(name: str) -> str:
    return name.split(".")[0].lower()
