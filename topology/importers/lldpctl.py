"""Parser of lldpctl's neighbour tables in its three forms.

`-f json0` keeps every level a list and every text an object with `value`. `-f json` collapses what is single: a list of
one becomes its item, an object with nothing but a value becomes text, and interfaces and chassis become keys of their
parent, a chassis without a name excepted. Without `-f` the same comes as indented text. All three are read by the same
rules, since whatever may be collapsed is unfolded again.

A neighbour's port is its port id where that is an interface name (`ifname`); other ids are addresses and numbers, and
the description, where there is one, is nearer to the name.

Source: lldpd, src/client/json_writer.c and text_writer.c; lldpcli(8) on json and json0; IEEE 802.1AB, 8.5.
Left out: everything that names neither chassis nor port (VLANs, MED, power, ages).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fabrictune.foundation.documents import Document, Key
from fabrictune.foundation.errors import Mistake
from fabrictune.topology.importers.cabling import Cabling

TEXT_TITLE = "LLDP neighbors:"

_SECTION = re.compile(r"  (\w[\w -]*):")
_FIELD = re.compile(r"    (\w+):\s+(\S.*)")
_INTERFACE = re.compile(r"Interface:\s+([^,]+),.*")
_NOT_RECEIVED = "Not received"  # in the text, instead of a name


@dataclass(frozen=True, kw_only=True, slots=True)
class Chassis:
    """A device as it names itself; "" for what it does not tell."""

    name: str
    id: str
    capabilities: frozenset[str] | None  # those enabled, of Bridge, Router, Station, ...; None where it sends none


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """Neighbour of a device on one of its ports."""

    local_port: str
    chassis: Chassis
    port: str
    is_port_name: bool  # False where the port is known by description, address or number only
    where: str


@dataclass(frozen=True, kw_only=True)
class NeighbourTable:
    """All that one device hears."""

    chassis: Chassis | None  # of the device itself, which lldpctl alone does not tell
    neighbours: tuple[Neighbour, ...]


class Interface(NamedTuple):
    """One interface of any form: its name, the object that describes it, and where that object is."""

    name: str
    body: dict[str, Any]
    where: str


def local_chassis(tree: Mapping[str, Any]) -> Chassis | None:
    """Return the device's own chassis, which SONiC saves with the neighbours."""
    fields = _first(_first(_first(tree.get("lldp_loc_chassis")).get("local-chassis")).get("chassis"))
    return _chassis(fields) if fields else None


def json_interfaces(document: Document, cabling: Cabling) -> Iterator[Interface]:
    """Yield the interfaces of json0, which have a name, and of json, which are named by their key."""
    for keys, lldp in _each(document, cabling, document.tree.get("lldp"), "lldp"):
        for inner, entry in _each(document, cabling, lldp.get("interface", []), *keys, "interface"):
            if isinstance(entry.get("name"), str):
                yield Interface(entry["name"], entry, document.where(*inner))
                continue
            for name, bodies in entry.items():
                for keys_of_body, body in _each(document, cabling, bodies, *inner, name):
                    yield Interface(name, body, document.where(*keys_of_body))


def _each(
    document: Document, cabling: Cabling, value: Any, *keys: Key
) -> Iterator[tuple[tuple[Key, ...], dict[str, Any]]]:
    """Yield the objects of a list, or the one in its place, with their keys."""
    items = value if isinstance(value, list) else [value]
    for row, item in enumerate(items):
        keys_of_item = (*keys, row) if isinstance(value, list) else keys
        if isinstance(item, dict):
            yield keys_of_item, item
        else:
            found = "nothing" if item is None else "not an object"
            where = document.where(*keys_of_item)
            cabling.add_mistakes(Mistake(where=where, found=found, allowed="objects, as lldpctl prints them"))


def text_interfaces(text: str, path: Path) -> Iterable[Interface]:
    """Return the interfaces of the text form, each with the object that json would have."""
    interfaces: list[Interface] = []
    section: dict[str, Any] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if interface := _INTERFACE.fullmatch(line.rstrip()):
            interfaces.append(Interface(interface[1], {}, f"{path}:{number}"))
        elif interfaces and (title := _SECTION.fullmatch(line.rstrip())):
            section = interfaces[-1].body.setdefault(title[1].lower(), {})
        elif field := _FIELD.fullmatch(line.rstrip()):
            _add_field(section, field[1], field[2])
    return interfaces


def _add_field(section: dict[str, Any], key: str, value: str) -> None:
    first, _, rest = value.partition(" ")
    if key in ("ChassisID", "PortID"):
        section["id"] = {"type": first, "value": rest}
    elif key == "SysName":
        section["name"] = "" if value == _NOT_RECEIVED else value
    elif key == "PortDescr":
        section["descr"] = "" if value == _NOT_RECEIVED else value
    elif key == "Capability":
        section.setdefault("capability", []).append({"type": first.rstrip(","), "enabled": rest == "on"})


def neighbours_of(interfaces: Iterable[Interface], cabling: Cabling) -> Iterator[Neighbour]:
    """Yield what the interfaces tell; one that does not tell of whom is a mistake."""
    for interface in interfaces:
        chassis = _chassis(_first(interface.body.get("chassis")))
        if not interface.name or not (chassis.name or chassis.id):
            found = "a neighbour without interface or chassis"
            allowed = "an interface with a name, and a chassis with a name or an id"
            cabling.add_mistakes(Mistake(where=interface.where, found=found, allowed=allowed))
            continue
        port = _first(interface.body.get("port"))
        port_id = _first(port.get("id"))
        is_port_name = port_id.get("type") == "ifname" and bool(_text(port_id))
        name_of_port = _text(port_id) if is_port_name else _text(port.get("descr")) or _text(port_id)
        yield Neighbour(
            local_port=interface.name,
            chassis=chassis,
            port=name_of_port,
            is_port_name=is_port_name,
            where=interface.where,
        )


def _chassis(fields: Mapping[str, Any]) -> Chassis:
    """Return a chassis whose fields stand in the object itself, or, collapsed, under its name."""
    name = _text(fields.get("name"))
    if len(fields) == 1 and not name and not _text(fields.get("id")):
        name, inner = next(iter(fields.items()))
        fields = _first(inner)
    capabilities = None
    if "capability" in fields:
        rows = fields["capability"] if isinstance(fields["capability"], list) else [fields["capability"]]
        enabled = [row.get("type") for row in rows if isinstance(row, dict) and row.get("enabled") is True]
        capabilities = frozenset(kind for kind in enabled if isinstance(kind, str))
    return Chassis(name=name, id=_text(fields.get("id")), capabilities=capabilities)


def _first(value: Any) -> Mapping[str, Any]:
    """Return an object, or the first of a list of them; what is neither is an empty one."""
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return text, alone or as `value` of an object; what is neither is ""."""
    if not isinstance(value, str):
        value = _first(value).get("value")
    return value if isinstance(value, str) else ""
