"""What a SONiC switch has in its databases: dumps of Redis, and the archives of `show techsupport`.

A dump is a JSON object of keys, each with its row or with the row below `value`, as `redis-dump -y` and `sonic-db-dump
-y` write it. CONFIG_DB's keys are `TABLE|key`, APPL_DB's `TABLE:key`. Of APPL_DB, LLDP_ENTRY_TABLE says what is heard
on each port and PORT_TABLE at which speed it runs; they are given to the reader of configurations as DEVICE_NEIGHBOR
and PORT. Where both databases are there, a neighbour that is heard counts more than one that is configured, and ports
on which they differ are noted.

Of an archive, read as a stream and never unpacked to disk, only the members dump/CONFIG_DB.json, dump/APPL_DB.json
(with the ASIC's number behind the name where there are several) and etc/sonic/config_db.json are kept.

A neighbour whose chassis id is that of a switch whose own dump is given is that switch, whatever name it was heard by.

Source: sonic-utilities, scripts/generate_dump; sonic-dbsyncd, src/lldp_syncd (LLDP_ENTRY_TABLE); sonic-swss-common,
schema.h; IEEE 802.1AB, 8.5.8 (capabilities, a bit each from the left).
Left out: COUNTERS_DB and STATE_DB, and what is heard on management ports.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import Document, Mark
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.sonic import HOST_TYPE
from fabrictune.topology.importers.sonic_tables import SonicTables

Row = Mapping[str, Any]

_KEY = re.compile(r"([A-Z][A-Z0-9_]+)(?:[|:](.*))?", re.DOTALL)
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}[:.-]?){5}[0-9a-fA-F]{2}")
_PORT_NAME = re.compile(r"Ethernet\d+")
_LINUX_NIC = re.compile(r"(eth|en[opsxP]|ib|hsn|rdma)\w*")
_BITS = re.compile(r"([0-9A-Fa-f]{2})[ :]?([0-9A-Fa-f]{2})?")
_BRIDGE, _ROUTER, _STATION = 0x20, 0x08, 0x01  # of the first octet
_INTERFACE_NAME, _LOCAL = "5", "7"  # subtypes of a port id


@dataclass(kw_only=True)
class SwitchDump:
    """Rows of one switch, or of one of its ASICs, by table and key, from all of its databases."""

    place: Path  # of the file, and of the member of an archive
    asic: str = ""
    configured: dict[str, dict[str, Row]] = field(default_factory=dict)
    applied: dict[str, dict[str, Row]] = field(default_factory=dict)

    @property
    def hostname(self) -> str:
        """The switch's name, as configured or as it is announced; "" where the dump has none."""
        metadata = self.configured.get("DEVICE_METADATA", {}).get("localhost", {})
        return _text(metadata.get("hostname")) or _text(self._own_chassis().get("lldp_loc_sys_name"))

    @property
    def chassis_id(self) -> str:
        """The switch's own chassis id, "" where the dump has none."""
        metadata = self.configured.get("DEVICE_METADATA", {}).get("localhost", {})
        return (_text(self._own_chassis().get("lldp_loc_chassis_id")) or _text(metadata.get("mac"))).lower()

    def _own_chassis(self) -> Row:
        return self.applied.get("LLDP_LOC_CHASSIS", {}).get("", {})


def add_rows(dump: SwitchDump, tree: Any) -> None:
    """Add the rows of one database, or of several in one file."""
    for key, entry in tree.items() if isinstance(tree, dict) else ():
        found = _KEY.fullmatch(key)
        row = entry.get("value") if isinstance(entry, dict) and isinstance(entry.get("value"), dict) else entry
        if not found or not isinstance(row, dict):
            continue
        table, name = found[1], found[2] or ""
        if "|" in key or not key[len(table) :]:
            _add_configured(dump, table, name, row)
        if "|" not in key:
            dump.applied.setdefault(table, {})[name] = row


def _add_configured(dump: SwitchDump, table: str, name: str, row: Row) -> None:
    rows = dump.configured.setdefault(table, {})
    if name:
        rows[name] = row
    else:  # a table of a configuration as it is on disk
        rows.update({key: value for key, value in row.items() if isinstance(value, dict)})


def tables_of(dump: SwitchDump, name_of_chassis: Mapping[str, str], cabling: Cabling) -> SonicTables:
    """Return the tables that the reader of configurations wants; what is left out is noted."""
    tables: dict[str, dict[str, Any]] = {
        name: dict(dump.configured.get(name, {})) for name in ("DEVICE_NEIGHBOR_METADATA", "CABLE_LENGTH")
    }
    tables["PORT"] = _ports(dump)
    metadata = dict(dump.configured.get("DEVICE_METADATA", {}).get("localhost", {}))
    if dump.hostname:
        metadata["hostname"] = dump.hostname
    tables["DEVICE_METADATA"] = {"localhost": metadata}
    tables["DEVICE_NEIGHBOR"] = _neighbours(dump, tables, name_of_chassis, cabling)
    document = Document(path=dump.place, text="", tree=tables, find_marks=lambda: Mark(1))
    return SonicTables(document=document, tree=tables, namespace=dump.asic)


def _ports(dump: SwitchDump) -> dict[str, Row]:
    """Return the ports, as configured, with what APPL_DB adds."""
    ports = {name: row for name, row in dump.applied.get("PORT_TABLE", {}).items() if "speed" in row or "lanes" in row}
    return {**ports, **{name: {**ports.get(name, {}), **row} for name, row in dump.configured.get("PORT", {}).items()}}


def _neighbours(
    dump: SwitchDump, tables: Mapping[str, dict[str, Any]], name_of_chassis: Mapping[str, str], cabling: Cabling
) -> dict[str, Row]:
    """Return the neighbours by local port; those that are heard count more than those that are configured."""
    configured = {
        _text(row.get("local_port")) or port: {"name": key_or_name, **row}
        for port, row in dump.configured.get("DEVICE_NEIGHBOR", {}).items()
        if (key_or_name := _text(row.get("name")) or port)
    }
    heard, num_elsewhere = {}, 0
    for port, row in dump.applied.get("LLDP_ENTRY_TABLE", {}).items():
        if port not in tables["PORT"]:
            num_elsewhere += 1
        elif neighbour := _neighbour(row, name_of_chassis):
            heard[port] = neighbour
            tables["DEVICE_NEIGHBOR_METADATA"].setdefault(
                neighbour["name"], {"type": HOST_TYPE} if _is_host(row) else {}
            )
    if num_elsewhere:
        note = f"neighbours on ports that PORT does not list, as management ports, left out: {num_elsewhere}"
        cabling.notes.append(f"{dump.place}: {note}")
    differ = [port for port, row in heard.items() if port in configured and configured[port]["name"] != row["name"]]
    if differ:
        first = f"{differ[0]}: {configured[differ[0]]['name']} configured, {heard[differ[0]]['name']} heard"
        cabling.notes.append(f"{dump.place}: ports whose neighbour is another than configured: {len(differ)} ({first})")
    return {**configured, **heard}


def _neighbour(row: Row, name_of_chassis: Mapping[str, str]) -> dict[str, str]:
    """Return name and port of a neighbour that was heard, {} where the row names none."""
    chassis, name = _text(row.get("lldp_rem_chassis_id")), _text(row.get("lldp_rem_sys_name"))
    name = name_of_chassis.get(chassis.lower(), name) or chassis
    port, description = _text(row.get("lldp_rem_port_id")), _text(row.get("lldp_rem_port_desc"))
    subtype = _text(row.get("lldp_rem_port_id_subtype"))
    is_alias = subtype == _LOCAL and _PORT_NAME.fullmatch(description)
    if description and (is_alias or _MAC.fullmatch(port)) and subtype != _INTERFACE_NAME:
        port = description
    return {"name": name, "port": port} if name else {}


def _is_host(row: Row) -> bool:
    """Return whether a neighbour is a station, neither bridges nor routes, or has a port named as Linux names NICs."""
    ports = (_text(row.get("lldp_rem_port_id")), _text(row.get("lldp_rem_port_desc")))
    bits = _BITS.match(_text(row.get("lldp_rem_sys_cap_enabled")))
    octet = int(bits[1], 16) if bits else _BRIDGE
    is_end = bool(octet & _STATION) or (bool(octet) and not octet & (_BRIDGE | _ROUTER))
    return is_end or any(_LINUX_NIC.fullmatch(port) for port in ports)


def dumps_by_chassis(dumps: list[SwitchDump]) -> dict[str, str]:
    """Return the name of each switch by its chassis id, where that is one switch's alone."""
    names: dict[str, set[str]] = {}
    for dump in dumps:
        if dump.chassis_id and dump.hostname:
            names.setdefault(dump.chassis_id, set()).add(dump.hostname)
    return {chassis: next(iter(known)) for chassis, known in names.items() if len(known) == 1}


def without_host(dumps: list[SwitchDump]) -> list[SwitchDump]:
    """Return the dumps of a switch's ASICs, with the host's name; the host's own where there are none."""
    asics = [dump for dump in dumps if dump.asic]
    hostname = next((dump.hostname for dump in dumps if dump.hostname), "")
    for dump in asics:
        metadata = dump.configured.setdefault("DEVICE_METADATA", {})
        metadata["localhost"] = {**metadata.get("localhost", {}), "hostname": dump.hostname or hostname}
    return asics or dumps


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
