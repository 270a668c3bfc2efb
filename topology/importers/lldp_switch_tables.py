"""LLDP neighbours as switches' command lines print them: tables, and details of one neighbour after the other.

    EOS      show lldp neighbors            Port, Neighbor Device ID, Neighbor Port ID, TTL
    NX-OS    show lldp neighbors            Device ID, Local Intf, Hold-time, Capability, Port ID; IOS alike
    Junos    show lldp neighbors            Local Interface, Parent Interface, Chassis Id, Port info, System Name
    SONiC    show lldp table                LocalPort, RemoteDevice, RemotePortID, Capability, RemotePortDescr
    Cumulus  net show lldp                  LocalPort, Speed, Mode, RemoteHost, RemotePort
    EOS, NX-OS, IOS                         show lldp neighbors detail

A file may be the session of several switches: a prompt (`leaf1#show lldp neighbors`, `admin@leaf1:~$ show lldp table`)
says whose table follows. EOS, NX-OS and IOS print their own ports short (Et1, Eth1/1, Gi1/0/1) and those of neighbours
in full, so that both are written in full here.

Source: the command references of these systems; ntc-templates' samples of their output.
Left out: hold times, TTLs, speeds and modes.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.lldpctl import Interface, Neighbour, neighbours_of

_PROMPT = re.compile(
    r"\s*(?:[\w.-]+@)?([A-Za-z][\w.-]*)(?::[^#>$ ]{0,60})?(?:\([^)]{0,60}\))?\s?"
    r"[#>$]\s{0,3}(?:sudo )?(?:show|net|nv|lldp|run)\b.*"
)
_PROMPT_LETTERS = "#>$"
_HEADING = re.compile(r"\s*(?:Port|Device ID|Local Interface|LocalPort|Local Port)\s{2,}.*")
_RULE = re.compile(r"[-\s=+]+")
_END = re.compile(r"\s*Total (?:entries|number)\b.*|\s*$", re.IGNORECASE)
_COLUMNS: Mapping[str, str] = {  # headings in lower case, without spaces
    **dict.fromkeys(("port", "localintf", "localinterface", "localport", "localif"), "port"),
    **dict.fromkeys(("neighbordeviceid", "deviceid", "systemname", "remotedevice", "remotehost"), "device"),
    **dict.fromkeys(("neighborportid", "portid", "portinfo", "remoteportid", "remoteport"), "far port"),
    **dict.fromkeys(("chassisid",), "chassis"),
    **dict.fromkeys(("capability", "capabilities"), "capability"),
    **dict.fromkeys(("remoteportdescr", "portdescription"), "description"),
}
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}")
_SHORT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("Et", "Eth"), "Ethernet"),
    "Gi": "GigabitEthernet",
    "Te": "TenGigabitEthernet",
    "Twe": "TwentyFiveGigE",
    "Fo": "FortyGigabitEthernet",
    "Hu": "HundredGigE",
    "Ma": "Management",
    "Po": "Port-channel",
}
_SHORT = re.compile(r"([A-Z][a-z]{1,2}) ?(\d[\d/.:]*)")
_CAPABILITIES = {"B": "Bridge", "R": "Router", "S": "Station", "W": "Wlan", "T": "Tel", "O": "Other"}

_BLOCK = re.compile(r"Interface (\S+) detected (\d+) LLDP neighbors?:?")
_FIELD = re.compile(r"(?:- )?([A-Z][A-Za-z ]*?)\s*: *(.*)")
_FIELDS: Mapping[str, str] = {
    "chassis id": "chassis",
    "port id": "far port",
    "port id type": "type",
    "local port id": "port",
    "local intf": "port",
    "local interface": "port",
    "system name": "device",
    "port description": "description",
    "enabled capabilities": "capability",
    "system capabilities": "capability",
}
_TABLE_HEAD = re.compile(
    rb"^(?:Port\s{2,}Neighbor Device ID|(?:Device ID|Device-ID)\s{2,}Local Intf|Local Interface\s+Parent Interface|"
    rb"Local ?Port\s{2,}(?:Remote ?Device|Speed\s+Mode))",
    re.MULTILINE | re.IGNORECASE,
)
_DETAIL_HEAD = re.compile(
    rb"^Interface \S+ detected \d+ LLDP neighbors?|^Local (?:Port id|Intf): \S+.{0,400}?^System Name:|"
    rb"^Chassis id: .{0,200}?^Local Port id:",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


@dataclass(kw_only=True)
class SwitchTable:
    """Neighbours of one switch."""

    device: str  # "" where no prompt names it
    where: str
    neighbours: list[Neighbour] = field(default_factory=list)
    num_left_out: int = 0  # lines that are no row
    first_left_out: str = ""


def is_switch_table(head: bytes) -> bool:
    """Return whether the beginning of a file is that of such a table."""
    return bool(_TABLE_HEAD.search(head) or _DETAIL_HEAD.search(head))


def read_switch_tables(text: str, path: Path, cabling: Cabling) -> list[SwitchTable]:
    """Return the tables in a text, one for each prompt, those without neighbours left out."""
    reader = _Reader(path, cabling)
    for number, line in enumerate(io.StringIO(text), start=1):
        reader.read(line.rstrip(), f"{path}:{number}")
    return reader.finish()


class _Reader:
    """Reads lines, and keeps in mind whose table, and below which heading."""

    def __init__(self, path: Path, cabling: Cabling) -> None:
        self.cabling = cabling
        self.tables = [SwitchTable(device="", where=str(path))]
        self.columns: list[tuple[str, int]] = []  # column, and where its heading begins
        self.pending = ""  # a device's name that fills its line, whose row comes next
        self.fields: dict[str, str] = {}
        self.detail_port = ""
        self.where = str(path)

    def read(self, line: str, where: str) -> None:
        """Read one line."""
        if any(letter in line for letter in _PROMPT_LETTERS) and (prompt := _PROMPT.fullmatch(line)):
            self._end_detail()
            self.tables.append(SwitchTable(device=prompt[1], where=where))
            self.columns, self.detail_port = [], ""
        elif _HEADING.fullmatch(line) and len(columns := _columns(line)) > 2:
            self.columns, self.pending = columns, ""
        elif block := _BLOCK.fullmatch(line.strip()):
            self._end_detail()
            self.columns, self.detail_port = [], block[1]
        elif _END.fullmatch(line) or _RULE.fullmatch(line):
            if not line.strip() and not self.detail_port:
                self._end_detail()
        elif self.columns:
            self._read_row(line, where)
        else:
            self._read_field(line.strip(), where)

    def finish(self) -> list[SwitchTable]:
        """Return the tables that have neighbours."""
        self._end_detail()
        return [table for table in self.tables if table.neighbours]

    def _read_row(self, line: str, where: str) -> None:
        cells = [cell for cell in re.split(r"\s{2,}|\t", line.strip()) if cell]
        if len(cells) == 1 and not self.pending and not line.startswith(" "):
            self.pending = cells[0]
            return
        values = _by_place(line, self.columns) if len(cells) != len(self.columns) else {}
        values = values or {column: cell for (column, _), cell in zip(self.columns, cells, strict=True)}
        if self.pending:
            values["device"] = values.get("device") or self.pending
            self.pending = ""
        self._add(values, line, where)

    def _read_field(self, line: str, where: str) -> None:
        """Read a line of a neighbour's details."""
        if line.startswith("Neighbor ") and self.detail_port:
            self._end_detail()
        found = _FIELD.fullmatch(line)
        name = _FIELDS.get(found[1].lower()) if found else None
        if not found or not name:
            return
        if (name == "chassis" and "chassis" in self.fields) or (name == "port" and "port" in self.fields):
            self._end_detail()
        self.where = self.where if self.fields else where
        self.fields[name] = found[2].strip().strip('"')

    def _end_detail(self) -> None:
        """Add the neighbour whose details were read."""
        if "far port" in self.fields or "device" in self.fields:
            fields = {name: value for name, value in self.fields.items() if value != "not advertised"}
            self._add({"port": self.detail_port, **fields}, "", self.where)
        self.fields = {}

    def _add(self, values: Mapping[str, str], line: str, where: str) -> None:
        table = self.tables[-1]
        device, port = values.get("device", ""), full_port_name(values.get("port", ""))
        if not port or not (device or values.get("chassis")):
            table.num_left_out += 1
            table.first_left_out = table.first_left_out or f"{line.strip()[:60]!r} at {where}"
            return
        table.neighbours.extend(neighbours_of([Interface(port, body_of(values), where)], self.cabling))


def body_of(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the object that lldpctl's JSON would have for a neighbour."""
    device, chassis_id = values.get("device", ""), values.get("chassis", "")
    if _MAC.fullmatch(device):
        device, chassis_id = "", device
    chassis: dict[str, Any] = {"id": {"type": "mac", "value": chassis_id}, "name": device.partition("(")[0].strip()}
    if capability := _capabilities(values.get("capability", "")):
        chassis["capability"] = [{"type": name, "enabled": True} for name in capability]
    far_port, kind = values.get("far port", ""), values.get("type", "")
    is_name = not _MAC.fullmatch(far_port) and "MAC" not in kind
    port = {
        "id": {"type": "ifname" if is_name else "mac", "value": full_port_name(far_port)},
        "descr": full_port_name(values.get("description", "")),
    }
    return {"chassis": chassis, "port": port}


def full_port_name(name: str) -> str:
    """Return a port's name in full: `Ethernet1/1` for `Eth1/1`."""
    short = _SHORT.fullmatch(name)
    return f"{_SHORT_NAMES[short[1]]}{short[2]}" if short and short[1] in _SHORT_NAMES else name


def _capabilities(text: str) -> list[str]:
    """Return capabilities from letters (`BR`, `B, R`) or words (`Bridge, Router`)."""
    words = re.findall(r"[A-Za-z]+", text)
    if all(letter in _CAPABILITIES for word in words for letter in word):
        words = [_CAPABILITIES[letter] for word in words for letter in word]
    return [word for word in words if word in ("Bridge", "Router", "Station")]


def _columns(line: str) -> list[tuple[str, int]]:
    """Return the columns of a heading, each known by a name here or by its own, with where it begins."""
    headings = re.finditer(r"\S+(?: \S+)*", line)
    return [
        (_COLUMNS.get(match[0].lower().replace(" ", "").replace("-", ""), match[0]), match.start())
        for match in headings
    ]


def _by_place(line: str, columns: Sequence[tuple[str, int]]) -> dict[str, str]:
    """Return the cells of a row by where their headings begin; a cell that begins before its heading goes with it."""
    starts = [start for _, start in columns]
    values: dict[str, str] = {}
    for match in re.finditer(r"\S+(?: \S+)*", line):
        place = max((row for row, start in enumerate(starts) if start <= match.start()), default=0)
        name = columns[place][0]
        values[name] = f"{values[name]} {match[0]}" if name in values else match[0]
    return values


def left_out(tables: Sequence[SwitchTable]) -> Iterator[str]:
    """Yield a note of the lines of each table that are no row."""
    for table in tables:
        if table.num_left_out:
            what = f"lines that are no neighbour, left out: {table.num_left_out}"
            yield f"{table.where}: {what} (first {table.first_left_out})"
