"""Fabrics from LLDP: the tables of several devices, of lldpctl or a switch's command line, joined into one.

A neighbour is known by its chassis id where that is a device's own whose table was read, whatever name it was heard
by; else by name, with or without its domain; one without a name by the only name that has its chassis id, else by that
id. Switches of one name with different chassis ids are kept apart, `spine1 (ID)`, which is a finding; hosts have an id
for each NIC, and some switches one for each port, which is noted. A link that both ends hear is one link, even where
one of them knows the other's port only by a description; a link that one end hears and the other, though its table was
read, does not is a finding.

A node is a host if it says that it is a station, that it neither bridges nor routes, or, since hosts with containers do
both, if all its ports are named as Linux names NICs (eth0, ens1f0np0, ib0); of one that says nothing its name may tell,
which is noted. Left out with a note: management
interfaces, further neighbours on one port, links from a node to itself, and devices without a neighbour.

Source: IEEE 802.1AB; lldpcli(8).
Left out: rates and cable lengths, which LLDP does not tell, and bonds, whose members are links of their own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fabrictune.foundation.checks import run_check, skip_check
from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.finding_rules.fabric import ONE_NAME
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies, without_loops
from fabrictune.topology.importers.cabling import Cabling, End
from fabrictune.topology.importers.lldp_devices import Device, read_devices
from fabrictune.topology.importers.lldp_keyvalue import KEYVALUE
from fabrictune.topology.importers.lldp_switch_json import SWITCH_JSON
from fabrictune.topology.importers.lldp_switch_tables import is_switch_table
from fabrictune.topology.importers.lldpctl import Chassis, Neighbour
from fabrictune.topology.importers.recognition import HEAD_BYTES
from fabrictune.topology.importers.roles import HOST_TIER, MAX_NAMED, named, tier_of_name

MIN_PORTS = 3  # from which chassis ids side by side are those of one switch's ports
_HEAD = re.compile(
    rb'\A\s*\{\s*"lldp(?:_loc_chassis)?"\s*:'  # json and json0
    rb'|\A\s*\[\s*\{[^\]]*?"cmd"\s*:\s*"[^"]*lldp'  # a capture
    rb"|\A-+\r?\nLLDP neighbors:"
)
_MANAGEMENT = re.compile(r"(mgmt|management|ma|fxp|me|vme|oob|bmc)[\d/.]*|em0", re.IGNORECASE)
LINUX_NIC = re.compile(r"(eth|en[opsxP]|ib|hsn|rdma)\w*")


def is_lldp(path: Path) -> bool:
    """Return whether the file begins as a table of lldpctl or of a switch, or as a capture of such tables."""
    head = read_head(path, HEAD_BYTES)
    return any(form.search(head) for form in (_HEAD, KEYVALUE, SWITCH_JSON)) or is_switch_table(head)


def load_lldp(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read the tables of one or several devices; raises InputError with every mistake in them."""
    return _read(paths, default_rate_bps).finish()


def _read(paths: Sequence[Path], default_rate_bps: int) -> Cabling:
    """Return what tables say; their rows are free again when the fabric is made."""
    cabling = Cabling("lldp")
    devices = list(read_devices(paths, cabling))
    heard = _heard(devices, cabling)
    links = _links(heard, _Names(devices, heard, cabling), cabling)
    _add_nodes(devices, heard, links, cabling)
    cabling.name = devices[0].name if len(devices) == 1 else paths[0].name.split(".")[0]
    adjacencies = (Adjacency(here=here, there=there, where=heard[here].where) for here, there in links.items())
    join_adjacencies(
        cabling,
        without_loops(cabling, adjacencies),
        reporters={device.name for device in devices if device.neighbours},
        default_rate_bps=default_rate_bps,
        confidence=Confidence.MEASURED,
    )
    return cabling


def _heard(devices: Sequence[Device], cabling: Cabling) -> dict[End, Neighbour]:
    """Return one neighbour for each port: of several the first with a name, since NICs speak as well as their hosts."""
    heard: dict[End, Neighbour] = {}
    num_further = 0
    for device in devices:
        for neighbour in device.neighbours:
            end = (device.name, neighbour.local_port)
            num_further += end in heard
            if end not in heard or (neighbour.chassis.name and not heard[end].chassis.name):
                heard[end] = neighbour
    if num_further:
        cabling.notes.append(f"further neighbours on one port, left out: {num_further}")
    management = _management(heard, cabling)
    return {end: neighbour for end, neighbour in heard.items() if end not in management}


class _Names:
    """Nodes of neighbours."""

    def __init__(self, devices: Sequence[Device], heard: Mapping[End, Neighbour], cabling: Cabling) -> None:
        self.devices = {device.name for device in devices}
        self.device_of_short_name: dict[str, str] = {}
        for device in devices:
            self.device_of_short_name.setdefault(_short(device.name), device.name)
        self.names_of_id: dict[str, set[str]] = {}
        named = [(device.chassis.id, device.name) for device in devices if device.chassis]
        named += [
            (neighbour.chassis.id, self._of_name(neighbour.chassis.name))
            for neighbour in heard.values()
            if neighbour.chassis.name
        ]
        for chassis_id, name in named:
            self.names_of_id.setdefault(chassis_id, set()).add(name)
        self.apart = self._names_of_several(devices, heard, cabling)
        self.device_of_id = _devices_by_id(devices)
        self._note_other_names(heard, cabling)

    def of(self, chassis: Chassis) -> str:
        """Return the name of the node whose chassis is heard."""
        if chassis.id.lower() in self.device_of_id:
            return self.device_of_id[chassis.id.lower()]
        if chassis.name:
            name = self._of_name(chassis.name)
            return self.apart.get((name, chassis.id), name)
        names = self.names_of_id.get(chassis.id, set())
        return next(iter(names)) if len(names) == 1 else chassis.id

    def _note_other_names(self, heard: Mapping[End, Neighbour], cabling: Cabling) -> None:
        other = [
            f"{chassis.name}, which is {self.of(chassis)}"
            for neighbour in heard.values()
            if (chassis := neighbour.chassis).name and self._of_name(chassis.name) != self.of(chassis)
            if chassis.id.lower() in self.device_of_id
        ]
        if other:
            cabling.notes.append(
                f"neighbours heard by another name, known by chassis id: {named(dict.fromkeys(other))}"
            )

    def _names_of_several(
        self, devices: Sequence[Device], heard: Mapping[End, Neighbour], cabling: Cabling
    ) -> dict[tuple[str, str], str]:
        """Return the nodes of chassis that share their name with another, by name and chassis id."""
        own_id = {device.name: device.chassis.id for device in devices if device.chassis}
        seen: dict[str, dict[str, list[Neighbour]]] = {}
        for neighbour in heard.values():
            if neighbour.chassis.name and neighbour.chassis.id:
                ids = seen.setdefault(self._of_name(neighbour.chassis.name), {})
                ids.setdefault(neighbour.chassis.id, []).append(neighbour)
        apart: dict[tuple[str, str], str] = {}
        merged, found = [], []
        for name, ids in seen.items():
            known = {*ids, own_id[name]} if own_id.get(name) else set(ids)
            if len(known) < 2:
                continue
            if _is_one_device(ids):
                merged.append(name)
            elif name in self.devices and not own_id.get(name):
                _refuse_unknown(name, devices, ids, cabling)
            else:
                apart |= {(name, chassis): f"{name} ({chassis})" for chassis in ids if chassis != own_id.get(name)}
                found.append(_one_name(name, ids))
        subject = f"{len(seen):,} names of neighbours with a chassis id"
        if seen:
            cabling.checked += run_check(ONE_NAME.id, subject, found, expected="one device of each name")
        else:
            cabling.checked += skip_check(ONE_NAME.id, subject, "no neighbour has both a name and a chassis id")
        if merged:
            cabling.notes.append(f"devices with a chassis id for each port, taken as one each: {named(merged)}")
        return apart

    def _of_name(self, name: str) -> str:
        """Return the device of a name that has a domain where the device's has none, or the other way round."""
        device = self.device_of_short_name.get(_short(name), name)
        is_same = name not in self.devices and ("." not in name or "." not in device)
        return device if is_same else name


def _devices_by_id(devices: Iterable[Device]) -> dict[str, str]:
    """Return the device of each chassis id that is one's own and nobody else's, whose table was read."""
    owners: dict[str, set[str]] = {}
    for device in devices:
        if device.chassis and device.chassis.id:
            owners.setdefault(device.chassis.id.lower(), set()).add(device.name)
    return {chassis_id: next(iter(names)) for chassis_id, names in owners.items() if len(names) == 1}


def _is_one_device(ids: Mapping[str, Sequence[Neighbour]]) -> bool:
    """Return whether the chassis ids of one name are those of a host's NICs, or of a switch's ports, side by side."""
    every = [neighbour for neighbours in ids.values() for neighbour in neighbours]
    if all(
        neighbour.chassis.capabilities is not None and _is_host(neighbour.chassis.capabilities) for neighbour in every
    ):
        return True
    blocks = {chassis.lower().rpartition(":")[0] for chassis in ids}
    return len(ids) >= MIN_PORTS and len(every) == len(ids) and len(blocks) == 1 and "" not in blocks


def _refuse_unknown(
    name: str, devices: Sequence[Device], ids: Mapping[str, Sequence[Neighbour]], cabling: Cabling
) -> None:
    """Note the mistake of a table whose device is one of several of its name, nobody knows which."""
    where = next(device.where for device in devices if device.name == name)
    shown = ", ".join(sorted(ids)[:MAX_NAMED])
    found = f"the table of {name!r}, where neighbours hear {len(ids)} devices of that name ({shown})"
    next_step = "give every device a hostname of its own, or collect the tables with the device's own chassis"
    cabling.add_mistakes(Mistake(where=where, found=found, allowed="one device of a name", next_step=next_step))


def _one_name(name: str, ids: Mapping[str, Sequence[Neighbour]]) -> Finding:
    return ONE_NAME.finding(
        entity=name,
        expected="one chassis id",
        actual=f"{len(ids)} chassis ids ({', '.join(sorted(ids)[:MAX_NAMED])}), each kept as a device of its own",
        confidence=Confidence.MEASURED,
        evidence=tuple(neighbours[0].where for neighbours in ids.values())[:MAX_NAMED],
    )


def _short(name: str) -> str:
    return name.split(".")[0]


def _links(heard: Mapping[End, Neighbour], names: _Names, cabling: Cabling) -> dict[End, End]:
    """Return the far end of each port; where its name was not heard, that which the far end itself has for it."""
    far_end_of = {here: (names.of(neighbour.chassis), neighbour.port) for here, neighbour in heard.items()}
    nameless = [here for here, neighbour in heard.items() if not neighbour.chassis.name]
    if nameless:
        first = f"{':'.join(nameless[0])}, taken as {far_end_of[nameless[0]][0]}"
        cabling.notes.append(f"neighbours without a name, known by chassis id: {len(nameless)} (first on {first})")
    heard_from = {there: here for here, there in far_end_of.items() if heard[here].is_port_name}
    links: dict[End, End] = {}
    for here, there in far_end_of.items():
        other = heard_from.get(here, there)
        node, port = other if other[0] == there[0] and not heard[here].is_port_name else there
        links[here] = (node, port or f"to-{here[0]}-{here[1]}")
    management = _management([*links, *links.values()], cabling)
    return {here: there for here, there in links.items() if management.isdisjoint((here, there))}


def _ports_of(ends: Iterable[End]) -> dict[str, dict[str, None]]:
    """Return the ports of each node, in their order."""
    ports_of: dict[str, dict[str, None]] = {}
    for node, port in ends:
        ports_of.setdefault(node, {})[port] = None
    return ports_of


def _management(ends: Iterable[End], cabling: Cabling) -> set[End]:
    """Return the ports that are for management, with a note: by name, and eth0 next to a switch's other ports."""
    ports_of = _ports_of(ends)
    management = {
        (node, port): None  # in their order
        for node, ports in ports_of.items()
        for port in ports
        if _MANAGEMENT.fullmatch(port) or (port == "eth0" and not _has_linux_names(ports))
    }
    if management:
        first = ":".join(next(iter(management)))
        cabling.notes.append(f"management interfaces, left out with their links: {len(management)} (first {first})")
    return set(management)


def _has_linux_names(ports: Iterable[str]) -> bool:
    return all(LINUX_NIC.fullmatch(port) for port in ports)


def _add_nodes(
    devices: Sequence[Device], heard: Mapping[End, Neighbour], links: Mapping[End, End], cabling: Cabling
) -> None:
    """Add the nodes that have a link, those whose tables were read first."""
    ports_of = _ports_of([*links, *links.values()])
    capabilities_of: dict[str, frozenset[str]] = {}
    for device in devices:
        if device.chassis and device.chassis.capabilities is not None:
            capabilities_of[device.name] = device.chassis.capabilities
    for here, there in links.items():
        capabilities = heard[here].chassis.capabilities
        if capabilities is not None:
            capabilities_of.setdefault(there[0], capabilities)
    where_of = {device.name: device.where for device in devices if device.name in ports_of}
    for here, there in links.items():
        where_of.setdefault(there[0], heard[here].where)
    guessed = []
    for name, where in where_of.items():
        kind = _kind(capabilities_of.get(name), ports_of[name])
        if kind == NodeKind.SWITCH and name not in capabilities_of and tier_of_name(name) == HOST_TIER:
            kind = NodeKind.HOST
            guessed.append(name)
        cabling.add_node(name, kind, where=where)
    if guessed:
        cabling.notes.append(f"neighbours without capabilities, taken as hosts by their names: {named(guessed)}")
    silent = [device.name for device in devices if device.name not in ports_of]
    if silent:
        cabling.notes.append(f"devices without a link to a neighbour, left out: {len(silent)} (first {silent[0]})")


def _kind(capabilities: frozenset[str] | None, ports: Iterable[str]) -> NodeKind:
    if capabilities is not None and _is_host(capabilities):
        return NodeKind.HOST
    return NodeKind.HOST if _has_linux_names(ports) else NodeKind.SWITCH


def _is_host(capabilities: frozenset[str]) -> bool:
    return "Station" in capabilities or capabilities.isdisjoint(("Bridge", "Router"))
