"""Files with LLDP tables: one device's, as lldpctl printed it, or a capture of many.

A capture is JSON arrays run together, in which every record has a `hostname` and, as text in `data`, that device's
table in any of lldpctl's forms; `data` is empty where lldpd did not run. A device is named by its record, by its own
chassis where the file has it (`lldp_loc_chassis`, as SONiC saves it), by the prompt above what a switch's command line
printed, else after its file, which is noted.

Source: the capture form is that of netenglabs/suzieq's collector.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.documents import Document, load_json_sequence, read_text
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.lldp_neighbour_tables import read_neighbour_table
from fabrictune.topology.importers.lldp_switch_tables import is_switch_table, left_out, read_switch_tables
from fabrictune.topology.importers.lldpctl import Chassis, Neighbour, NeighbourTable

HEAD_CHARACTERS = 8192  # of a text, by which its form is recognised


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device whose table was read."""

    name: str
    chassis: Chassis | None
    neighbours: tuple[Neighbour, ...]
    where: str


def read_devices(paths: Sequence[Path], cabling: Cabling) -> Iterator[Device]:
    """Yield the devices of all files, each once; raises InputError for a file that cannot be read at all."""
    where_of: dict[str, str] = {}
    for path in paths:
        for device in _devices_of(path, cabling):
            if device.name in where_of:
                found = f"the device {device.name!r} a second time (first at {where_of[device.name]})"
                cabling.add_mistakes(Mistake(where=device.where, found=found, allowed="one table for each device"))
            else:
                where_of[device.name] = device.where
                yield device


def _devices_of(path: Path, cabling: Cabling) -> Iterator[Device]:
    text = read_text(path)
    if text.lstrip().startswith("["):
        for document in load_json_sequence(path):
            yield from _captured(document, cabling)
        return
    if is_switch_table(text[:HEAD_CHARACTERS].encode()):
        yield from _switches(text, path, cabling)
        return
    table = read_neighbour_table(text, path, cabling)
    name = table.chassis.name if table.chassis else ""
    yield Device(
        name=name or _name_of_file(path, cabling), chassis=table.chassis, neighbours=table.neighbours, where=str(path)
    )


def _switches(text: str, path: Path, cabling: Cabling) -> Iterator[Device]:
    """Yield the switches whose command lines printed a text."""
    tables = read_switch_tables(text, path, cabling)
    cabling.notes.extend(left_out(tables))
    neighbours_of_name: dict[str, list[Neighbour]] = {}
    for table in tables:  # a switch may have printed several tables
        name = table.device or _name_of_file(path, cabling)
        neighbours_of_name.setdefault(name, []).extend(table.neighbours)
    for name, neighbours in neighbours_of_name.items():
        yield Device(name=name, chassis=None, neighbours=tuple(neighbours), where=str(path))
    if not tables:
        found, allowed = "a table of LLDP neighbours without a row", "neighbours, a line each"
        cabling.add_mistakes(Mistake(where=str(path), found=found, allowed=allowed))


def _name_of_file(path: Path, cabling: Cabling) -> str:
    name = path.name.split(".")[0]
    cabling.notes.append(f"{path}: does not name its device, taken as {name}")
    return name


def _captured(document: Document, cabling: Cabling) -> Iterator[Device]:
    """Yield the devices of one array of a capture."""
    records = document.tree if isinstance(document.tree, list) else [document.tree]
    for row, record in enumerate(records):
        name, text = (record.get(key) if isinstance(record, dict) else None for key in ("hostname", "data"))
        if not isinstance(name, str) or not name or not isinstance(text, str):
            where, found = document.where(row), "not a record of a capture"
            cabling.add_mistakes(Mistake(where=where, found=found, allowed="an object with hostname and data"))
            continue
        where = document.where(row, "data")
        table = NeighbourTable(chassis=None, neighbours=())
        if text.strip():
            try:
                table = read_neighbour_table(text, Path(where), cabling)
            except InputError as error:  # of this record's JSON; the others are read all the same
                cabling.add_mistakes(*error.mistakes)
        yield Device(name=name, chassis=table.chassis, neighbours=table.neighbours, where=where)
