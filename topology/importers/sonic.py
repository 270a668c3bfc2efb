"""SONiC switch configurations (`config_db.json`), one file a switch, joined by their neighbour tables.

DEVICE_NEIGHBOR names what hangs on each port. It comes keyed by the local port, with `name` and `port` of the
neighbour, or keyed by the neighbour, with `local_port` and `port`; `sonic_tables` has the forms of tables. Rates are
PORT's `speed`, delays follow from CABLE_LENGTH. A link in the tables of both switches is one link; a neighbour whose
own file is not given becomes a node that has just the links that others list. A neighbour is a host if
DEVICE_NEIGHBOR_METADATA says `Server`, or if it says nothing and the name begins with "server"; all others are
switches.

A configuration without hostname is named after its file, or its folder where the file's name is that of any
configuration; this is noted. The ASICs of one switch have a file each, with the hostname of all, or share one: they are
read as one switch, whose links between its ASICs are left out and noted.

Source: SONiC, doc/Configuration.md (DEVICE_NEIGHBOR, PORT, CABLE_LENGTH), and the configurations its minigraph tool
writes, whose DEVICE_NEIGHBOR is keyed by local port.
Left out: port channels (their members are links of their own), breakout ports that are not listed, and everything that
is not cabling.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeGuard

from fabrictune.foundation.documents import Key, load_json
from fabrictune.foundation.errors import FabricError, Mistake, UnitError, nearest_name
from fabrictune.foundation.records import Confidence
from fabrictune.foundation.units import parse_length_mm
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies
from fabrictune.topology.importers.cabling import MAX_GUESSES, Cabling
from fabrictune.topology.importers.recognition import begins_with
from fabrictune.topology.importers.sonic_tables import Rows, SonicTables, tables_in

TIER_OF_TYPE = {
    "ToRRouter": 1,
    "BackEndToRRouter": 1,
    "LeafRouter": 2,
    "BackEndLeafRouter": 2,
    "SpineRouter": 3,
    "UpperSpineRouter": 3,
    "LowerSpineRouter": 3,
}
HOST_TYPE = "Server"
TABLES = ("DEVICE_METADATA", "PORT", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA", "CABLE_LENGTH")

_HEAD = re.compile(rb'"[A-Z][A-Z0-9_]{3,}(?:\|[^"\n]*)?"\s*:\s*\{')
_ANY_SWITCH = re.compile(r"((running|startup)?[-_]?config(uration)?[-_]?(db)?|asic|redis|dump)?[-_]?\d*", re.I)
_SUFFIX = re.compile(r"([-_.]((running|startup)?[-_]?config(uration)?[-_]?(db)?|asic)\d*)+$", re.I)
_ASIC = re.compile(r"asic\d+", re.I)  # as a neighbour: another ASIC of this switch


def is_sonic(path: Path) -> bool:
    """Return whether the file is JSON, and its name or its beginning that of a configuration: a table in capitals."""
    return path.suffix == ".json" and ("config_db" in path.name or begins_with(path, _HEAD))


def load_sonic(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read the configurations of one or several switches; raises InputError with every mistake in them."""
    sources = [tables for path in paths for tables in tables_in(load_json(path))]
    return fabric_of_tables(sources, Cabling("sonic"), default_rate_bps=default_rate_bps)


def fabric_of_tables(
    sources: Sequence[SonicTables],
    cabling: Cabling,
    *,
    default_rate_bps: int = DEFAULT_RATE_BPS,
    confidence: Confidence = Confidence.CONFIGURED,
) -> Fabric:
    """Return the fabric of the tables of switches, or of their ASICs; raises InputError with every mistake in them."""
    switches = [_Switch(tables, cabling) for tables in sources]
    of_name: dict[str, list[_Switch]] = {}
    for switch in switches:
        _add_switch(cabling, switch, of_name.setdefault(switch.name, []))
    if cabling.mistakes:
        raise FabricError(*cabling.mistakes)
    cabling.name = switches[0].name if len(of_name) == 1 else f"sonic-{len(of_name)}-switches"
    join_adjacencies(
        cabling,
        _adjacencies(cabling, of_name),
        reporters=of_name.keys(),
        default_rate_bps=default_rate_bps,
        confidence=confidence,
    )
    return cabling.finish()


def kind_of(name: str, device_type: str) -> NodeKind:
    """Return what a device is by SONiC's type of it, or by its name where the type is ""."""
    is_host = device_type == HOST_TYPE or (not device_type and name.lower().startswith(HOST_TYPE.lower()))
    return NodeKind.HOST if is_host else NodeKind.SWITCH


def is_speed(text: object) -> TypeGuard[str]:
    """Return whether a value is a speed as SONiC writes it: megabits a second as text."""
    return isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0


@dataclass(frozen=True, kw_only=True)
class _Neighbour:
    """One row of DEVICE_NEIGHBOR."""

    local_port: str
    name: str
    port: str  # "" where the file does not tell
    where: str


class _Switch:
    """One configuration: its name, and the tables that its cabling is in."""

    def __init__(self, source: SonicTables, cabling: Cabling) -> None:
        self.document = source.document
        self.source = source
        self.cabling = cabling
        self.tables = {name: self._rows(name) for name in TABLES}
        self.port_of_alias = {str(row.get("alias", port)): port for port, row in self.tables["PORT"].items()}
        metadata = self.tables["DEVICE_METADATA"].get("localhost", {})
        self.has_hostname = bool(metadata.get("hostname"))
        self.name = str(metadata.get("hostname") or name_of_file(source.document.path))
        self.asic = str(metadata.get("asic_name") or source.asic)
        self.tier = TIER_OF_TYPE.get(str(metadata.get("type")), UNKNOWN_TIER)

    def where(self, table: str, *keys: Key) -> str:
        """Return the place of a value in the form the file has."""
        return self.source.where(table, *keys)

    def _rows(self, name: str) -> Rows:
        """Return the rows of a table, empty if it is missing; one of another form is a mistake."""
        rows = self.source.rows(name)
        if rows is None:
            found, allowed = f"a {name} of another form", "rows of named fields"
            self.cabling.add_mistakes(Mistake(where=self.where(name), found=found, allowed=allowed))
        return rows or {}

    def neighbours(self) -> Iterator[_Neighbour]:
        """Yield the rows of DEVICE_NEIGHBOR in both shapes."""
        for key, row in self.tables["DEVICE_NEIGHBOR"].items():
            local_port = row.get("local_port", key)
            name = row.get("name", key if "local_port" in row else None)
            port = row.get("port") or ""
            where = self.where("DEVICE_NEIGHBOR", key)
            if name and local_port and all(isinstance(text, str) for text in (local_port, name, port)):
                yield _Neighbour(local_port=local_port, name=name, port=port, where=where)
            else:
                allowed = "name and port by local port, or local_port and port by neighbour"
                self.cabling.add_mistakes(Mistake(where=where, found="a neighbour of unknown form", allowed=allowed))

    def port_named(self, name: str) -> str:
        """Return the port of a name or an alias."""
        return name if name in self.tables["PORT"] else self.port_of_alias.get(name, name)

    def cable_mm(self, port: str) -> int | None:
        """Return the length of a port's cable, None where it is not given."""
        for key, row in self.tables["CABLE_LENGTH"].items():
            if port in row:
                try:
                    return parse_length_mm(str(row[port]), where=self.where("CABLE_LENGTH", key, port))
                except UnitError as error:
                    self.cabling.add_mistakes(*error.mistakes)
        return None

    def rate_bps(self, port: str) -> int | None:
        """Return the rate of a port, None where it is not given."""
        speed = self.tables["PORT"].get(port, {}).get("speed")
        if speed is None:
            return None
        if is_speed(speed):
            return int(speed) * 10**6
        self.cabling.add_mistakes(
            Mistake(
                where=self.where("PORT", port, "speed"),
                found=f"a speed of {str(speed)[:40]!r}",
                allowed='megabits a second as text, such as "400000"',
            )
        )
        return None

    def is_down(self, port: str) -> bool:
        """Return whether the configuration says that a port is down."""
        return self.tables["PORT"].get(port, {}).get("admin_status") == "down"


def name_of_file(path: Path) -> str:
    """Return what a file's name or its folder's says of the switch, "" where they are those of any."""
    for text in (path.name.removesuffix(".json"), path.absolute().parent.name):
        if not _ANY_SWITCH.fullmatch(text):
            return _SUFFIX.sub("", text)
    return ""


def _add_switch(cabling: Cabling, switch: _Switch, before: list[_Switch]) -> None:
    """Add a switch, or another ASIC of one; `before` are the files of its name read so far."""
    where = switch.where("DEVICE_METADATA", "localhost", "hostname")
    has_ports = bool(switch.tables["PORT"] or switch.tables["DEVICE_NEIGHBOR"])
    if not switch.name or not (switch.has_hostname or has_ports):
        cabling.add_mistakes(
            Mistake(
                where=where,
                found="no hostname, so no switch configuration",
                allowed="a config_db.json with DEVICE_METADATA, or one with PORT whose file is named after the switch",
                next_step="take the file from /etc/sonic/config_db.json of the switch",
            )
        )
    elif before and not all(switch.asic and other.asic and switch.asic != other.asic for other in before):
        found = f"the switch {switch.name!r} a second time (first at {cabling.nodes[switch.name].where})"
        allowed = "one file for each switch, or for each of its ASICs with their asic_name"
        cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))
    elif not switch.has_hostname:
        cabling.notes.append(f"{switch.document.path}: no hostname; the switch is named {switch.name!r} after the file")
    before.append(switch)
    cabling.add_node(switch.name, NodeKind.SWITCH, where=where, tier=switch.tier)


def _adjacencies(cabling: Cabling, of_name: Mapping[str, Sequence[_Switch]]) -> Iterator[Adjacency]:
    """Yield what each switch says of its neighbours, whose nodes are added on the way."""
    for asics in of_name.values():
        seen: set[tuple[str, str, str]] = set()
        for switch in asics:
            _note_left_out(cabling, switch)
            for neighbour in switch.neighbours():
                owner = _owner(asics, switch, neighbour.local_port)
                key = owner.port_named(neighbour.local_port), neighbour.name, neighbour.port
                if key not in seen and not (switch.asic and _ASIC.fullmatch(neighbour.name)):
                    seen.add(key)
                    yield from _adjacency(cabling, owner, neighbour, of_name)


def _owner(asics: Sequence[_Switch], switch: _Switch, port: str) -> _Switch:
    """Return the ASIC of a switch that has the port, the one whose table names it where none has."""
    return next((asic for asic in (switch, *asics) if asic.port_named(port) in asic.tables["PORT"]), switch)


def _note_left_out(cabling: Cabling, switch: _Switch) -> None:
    if not switch.tables["DEVICE_NEIGHBOR"]:
        found = "no DEVICE_NEIGHBOR, so no link from it; `lldpctl -f json` on the switch has its neighbours"
        cabling.notes.append(f"{switch.document.path}: {found}")
    num_internal = sum(row.get("role") == "Int" for row in switch.tables["PORT"].values())
    if num_internal:
        found = f"ports to other ASICs of {switch.name}, left out: {num_internal}"
        cabling.notes.append(f"{switch.document.path}: {found}")


def _adjacency(
    cabling: Cabling, switch: _Switch, neighbour: _Neighbour, of_name: Mapping[str, Sequence[_Switch]]
) -> Iterator[Adjacency]:
    """Yield the link to a neighbour, unless its port is down or not listed."""
    local_port = switch.port_named(neighbour.local_port)
    if local_port not in switch.tables["PORT"]:
        _refuse_unlisted(cabling, switch, neighbour)
    elif switch.is_down(local_port):
        cabling.notes.append(f"{neighbour.where}: the link on {local_port}, which is down, left out")
    else:
        _add_neighbour(cabling, switch, neighbour)
        remote_port = _remote_port(of_name.get(neighbour.name, ()), neighbour.port)
        yield Adjacency(
            here=(switch.name, local_port),
            there=(neighbour.name, remote_port or f"to-{switch.name}-{local_port}"),
            where=neighbour.where,
            rate_bps=switch.rate_bps(local_port),
            cable_mm=switch.cable_mm(local_port),
        )


def _remote_port(switches: Sequence[_Switch], name: str) -> str:
    """Return the port of a name or alias on the ASICs of a switch, or the name where none has it."""
    return next((port for switch in switches if (port := switch.port_named(name)) in switch.tables["PORT"]), name)


def _refuse_unlisted(cabling: Cabling, switch: _Switch, neighbour: _Neighbour) -> None:
    cabling.add_mistakes(
        Mistake(
            where=neighbour.where,
            found=f"a neighbour on {neighbour.local_port!r}, which PORT does not list",
            nearest=nearest_name(neighbour.local_port, islice(switch.tables["PORT"], MAX_GUESSES)),
        )
    )


def _add_neighbour(cabling: Cabling, switch: _Switch, neighbour: _Neighbour) -> None:
    metadata = switch.tables["DEVICE_NEIGHBOR_METADATA"].get(neighbour.name, {})
    role = str(metadata.get("type", ""))
    tier = TIER_OF_TYPE.get(role, UNKNOWN_TIER)
    cabling.add_node(neighbour.name, kind_of(neighbour.name, role), where=neighbour.where, tier=tier)
