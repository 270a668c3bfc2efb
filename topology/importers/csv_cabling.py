"""Cabling lists as CSV: a row for each cable, with columns by many names.

Needed are two devices and two ports; a rate, a length, roles, a rail and a status are used where they stand. COLUMNS
has the names that are known, those of NetBox's cable export and bulk import among them; case, spaces and punctuation do
not count. A rate is `400 Gbps`, `400G` or `400GbE`, a length `30 m` or `3 Meters`; a bare number has the unit that ends
its heading (`rate_gbps`, `Length (m)`) or is in the column `length_unit`.

Roles (`server`, `leaf`, `spine`, ...) say what is a host, and which tier a switch has. What a device without a role is,
or with one that is not known, its name says, or else it is a switch; both are noted. A cable may be listed once, or
from both ends; where a list has most of its cables from both ends, one that it has once is a finding. Cables of another
status than connected, and those between ports of power or consoles, are skipped and noted.

Source: RFC 4180; NetBox, the cable model of dcim and the headings of its bulk import.
Left out: lengths in feet and inches, and cables with several ports at an end.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import FabricError, Mistake, UnitError, nearest_name, quote
from fabrictune.foundation.units import parse_length_mm, parse_link_rate_bps
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import NO_RAIL, UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies
from fabrictune.topology.importers.cabling import Cabling, the_only
from fabrictune.topology.importers.roles import HOST_TIER, named, tier_of_name, tier_of_role

_SIDES = {"a": ("a", "local", "from", "source", "src"), "b": ("b", "z", "remote", "to", "destination", "dst", "peer")}
_PATTERNS = {  # of a column that both sides have; {} is one of the side's names
    "device": ("{}_device", "device_{}", "side_{}_device", "{}_node", "{}_host", "{}_hostname", "{}_switch", "{}"),
    "port": ("{}_port", "port_{}", "{}_interface", "interface_{}", "side_{}_name", "termination_{}", "{}_if"),
    "role": ("{}_role", "role_{}", "side_{}_role", "{}_device_role", "{}_kind"),
    "termination": ("side_{}_type", "termination_{}_type"),
}
COLUMNS: Mapping[str, tuple[str, ...]] = {
    **{
        f"{side}_{column}": tuple(pattern.format(name) for pattern in patterns for name in names)
        for side, names in _SIDES.items()
        for column, patterns in _PATTERNS.items()
    },
    "rate": ("rate", "speed", "bandwidth", "link_rate", "link_speed", "port_speed"),
    "length": ("length", "cable_length"),
    "length_unit": ("length_unit", "cable_length_unit"),
    "rail": ("rail",),
    "status": ("status", "cable_status"),
}
MAX_COLUMNS = 1_000
NEEDED = ("a_device", "a_port", "b_device", "b_port")
UNITS = {
    **{unit.lower(): unit for unit in ("Gbps", "Mbps", "Kbps", "mm", "cm", "m", "km")},
    "centimeters": "cm",
    "meters": "m",
    "metres": "m",
    "kilometers": "km",
}
CONNECTED = ("connected", "active", "installed")

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")

CablingRow = Mapping[str, str]  # text by column


def is_csv(path: Path) -> bool:
    """Return whether the file's name is that of a table."""
    return path.suffix in (".csv", ".tsv")


def load_csv(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read one cabling list; raises InputError with every mistake in it."""
    return _read(the_only(paths), default_rate_bps).finish()


def _read(path: Path, default_rate_bps: int) -> Cabling:
    """Return what a list says; its rows are free again when the fabric is made."""
    reader = _Reader(path)
    cables, cabling = list(reader.cables()), reader.cabling
    reporters = cabling.nodes if _are_mutual(cables) else ()
    join_adjacencies(cabling, cables, reporters=reporters, default_rate_bps=default_rate_bps)
    return cabling


def _are_mutual(cables: Sequence[Adjacency]) -> bool:
    """Return whether most cables stand in the list from both of their ends."""
    ends = {(cable.here, cable.there) for cable in cables}
    return 2 * sum((cable.there, cable.here) in ends for cable in cables) > len(cables)


class _Reader:
    """Reads rows into adjacencies, adding their devices on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cabling = Cabling(path.stem)
        self.unit_of: dict[str, str] = {}  # by column, from its heading
        self.quantities: dict[tuple[Callable[..., int], str], int] = {}  # each read once: a list has few that differ
        self.num_skipped = 0
        self.guessed: dict[str, dict[str, None]] = {}  # by what was guessed: names

    def cables(self) -> Iterator[Adjacency]:
        for row, cells in self._rows():
            where = f"{self.path}:{row}"
            if self._is_skipped(cells):
                self.num_skipped += 1
            elif missing := [column for column in NEEDED if not cells[column]]:
                self._mistake(where, f"no {', '.join(missing)}", "a device and a port at each end")
            else:
                for side in _SIDES:
                    self._add_device(cells[f"{side}_device"], cells.get(f"{side}_role", ""), where)
                yield Adjacency(
                    here=(cells["a_device"], cells["a_port"]),
                    there=(cells["b_device"], cells["b_port"]),
                    where=where,
                    rate_bps=self._rate_bps(cells, f"{where}: rate"),
                    cable_mm=self._cable_mm(cells, f"{where}: length"),
                    rail=self._rail(cells, f"{where}: rail"),
                )
        if all(node.kind == NodeKind.SWITCH for node in self.cabling.nodes.values()):
            self.cabling.notes.append("no device is a host by role or name; give a column a_role and b_role")
        if self.num_skipped:
            self.cabling.notes.append(f"cables that carry no traffic, skipped: {self.num_skipped}")
        self.cabling.notes.extend(f"{guess}: {named(names)}" for guess, names in self.guessed.items())

    def _rows(self) -> Iterator[tuple[int, CablingRow]]:
        """Yield each row that is not empty, with its line, by column."""
        text = read_text(self.path)
        delimiter = max(",;\t|", key=text.partition("\n")[0].count)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        columns: dict[str, int] = {}
        texts: dict[str, str] = {}  # each once: a list has few names that differ
        try:
            for cells in lines:
                if not any(cell.strip() for cell in cells):
                    continue
                if not columns:
                    columns = self._read_heading(cells, f"{self.path}:{lines.line_num}")
                    continue
                padded = [*cells, *[""] * len(columns)]
                stripped = ((column, padded[place].strip()) for column, place in columns.items())
                yield lines.line_num, {column: texts.setdefault(text, text) for column, text in stripped}
        except csv.Error as error:
            raise FabricError(Mistake(where=f"{self.path}:{lines.line_num}", found=f"no CSV: {error}")) from None

    def _read_heading(self, cells: Sequence[str], where: str) -> dict[str, int]:
        """Return the place of each column; raises FabricError where one that is needed is missing or is there twice."""
        if len(cells) > MAX_COLUMNS:
            raise FabricError(Mistake(where=where, found=f"{len(cells)} columns", allowed=f"at most {MAX_COLUMNS}"))
        places: dict[str, int] = {}
        for place, cell in enumerate(cells):
            name = _normal(cell)
            stem, _, unit = name.rpartition("_")
            column = _COLUMN_OF.get(name) or (_COLUMN_OF.get(stem) if unit in UNITS else None)
            if column in places:
                self._mistake(where, f"{quote(cell)}, a second column for the {column}", "one column for each")
            elif column:
                places[column] = place
                self.unit_of[column] = UNITS.get(unit, "")
        names = [_normal(cell) for cell in cells]
        for column in NEEDED:
            if column not in places:
                nearest = nearest_name(column, names)
                next_step = f"call a column {column}, or one of {', '.join(COLUMNS[column][:4])}"
                self.cabling.add_mistakes(
                    Mistake(where=where, found=f"no column for the {column}", nearest=nearest, next_step=next_step)
                )
        if self.cabling.mistakes:
            raise FabricError(*self.cabling.mistakes)
        return places

    def _is_skipped(self, cells: CablingRow) -> bool:
        terminations = [cells.get(f"{side}_termination", "") for side in _SIDES]
        is_connected = cells.get("status", "").lower() in ("", *CONNECTED)
        return not is_connected or any(kind and "interface" not in kind.lower() for kind in terminations)

    def _add_device(self, name: str, role: str, where: str) -> None:
        if name in self.cabling.nodes:
            return
        tier, by_name = tier_of_role(role), tier_of_name(name)
        is_host = HOST_TIER in (tier, by_name if tier is None else None)
        if tier is None:
            why = f"role {quote(role)} is not known" if role else "devices without a role"
            what = "hosts" if is_host else "switches"
            reason = "by their names" if by_name is not None else "since nothing says what they are"
            self.guessed.setdefault(f"{why}, taken as {what} {reason}", {})[name] = None
        kind = NodeKind.HOST if is_host else NodeKind.SWITCH
        self.cabling.add_node(name, kind, where=where, tier=UNKNOWN_TIER if tier is None else tier)

    def _rate_bps(self, cells: CablingRow, where: str) -> int | None:
        text = cells.get("rate", "")
        if _NUMBER.fullmatch(text):
            text = f"{text} {self.unit_of['rate']}".strip()
        return self._quantity(parse_link_rate_bps, text, where)

    def _cable_mm(self, cells: CablingRow, where: str) -> int | None:
        text = cells.get("length", "")
        if match := _LENGTH.fullmatch(text):
            unit = match[2] or cells.get("length_unit", "") or self.unit_of["length"]
            text = f"{match[1]} {UNITS.get(unit.lower(), unit)}".strip()
        return self._quantity(parse_length_mm, text, where)

    def _quantity(self, parse: Callable[..., int], text: str, where: str) -> int | None:
        """Return a quantity, None where the cell is empty; one that cannot be read is a mistake."""
        if text and (parse, text) not in self.quantities:
            try:
                self.quantities[parse, text] = parse(text, where=where)
            except UnitError as error:
                self.cabling.add_mistakes(*error.mistakes)
        return self.quantities.get((parse, text))

    def _rail(self, cells: CablingRow, where: str) -> int:
        text = cells.get("rail", "")
        if text and not re.fullmatch("[0-9]{1,4}", text):
            self._mistake(where, quote(text), "a whole number from 0")
            return NO_RAIL
        return int(text) if text else NO_RAIL

    def _mistake(self, where: str, found: str, allowed: str) -> None:
        self.cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))


def _normal(heading: str) -> str:
    """Return a heading in lower case, its words joined by underscores."""
    return "_".join(re.findall("[a-z0-9]+", heading.lower()))


_COLUMN_OF = {name: column for column, names in COLUMNS.items() for name in names}
