"""Rows of SONiC's QoS tables: numbers with bounds, references to other rows, and keys that name several queues.

A key such as `Ethernet0,Ethernet4|3-4` is for two ports and two queues; a VOQ chassis puts host and ASIC before them.
A reference is a name, or `[TABLE|name]` as older releases write it. What was read is remembered, so that what was not
can be listed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.foreign_files import shown
from fabrictune.topology.importers.sonic_tables import Rows, SonicTables

MAX_BYTES = 2**40  # of a threshold, a profile or a pool
QUEUES = range(8)  # of unicast; and priority groups and traffic classes

_NUMBERS = re.compile(r"([0-9]{1,2})(?:-([0-9]{1,2}))?")
_PIECE = re.compile(r"[^,]+")
_REFERENCE = re.compile(r"\[(?:[A-Z0-9_]+[|:])?([^\]]*)\]|(?:[A-Z][A-Z0-9_]+[|:])(.*)", re.DOTALL)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


@dataclass
class QosRows:
    """The rows of one switch, or of one of its ASICs."""

    tables: SonicTables
    mistakes: dict[Mistake, None] = field(default_factory=dict)  # each once, in order
    read: dict[str, dict[str, int]] = field(default_factory=dict)  # by table and row: a bit for each field
    bits: dict[str, int] = field(default_factory=dict)  # of fields
    _rows: dict[str, Rows] = field(default_factory=dict)

    def of(self, table: str) -> Rows:
        """Return the rows of a table; one of another form is a mistake, and is empty."""
        if table not in self._rows:
            rows = self.tables.rows(table)
            if rows is None:
                self.refuse((table,), f"a {table} of another form", "rows of named fields")
            self._rows[table] = rows or {}
        return self._rows[table]

    def get(self, table: str, row: str, name: str) -> Any:
        """Return a field, None where it is missing; it counts as read."""
        value = self.of(table).get(row, {}).get(name)
        if value is not None:
            of_table, bit = self.read.setdefault(table, {}), self.bits.setdefault(name, 1 << len(self.bits))
            of_table[row] = of_table.get(row, 0) | bit
        return value

    def where(self, table: str, *keys: str) -> str:
        """Return the place of a table, a row or a field."""
        return self.tables.where(table, *keys)

    def number(self, table: str, row: str, name: str, bounds: tuple[int, int] = (0, MAX_BYTES)) -> int | None:
        """Return a whole number within bounds, None where the field is missing; another value is a mistake."""
        value = self.get(table, row, name)
        if value is None:
            return None
        text = str(value)
        low, high = bounds
        if re.fullmatch(r"-?\d{1,15}", text, re.ASCII) and low <= int(text) <= high:
            return int(text)
        self.refuse((table, row, name), shown(value), f"a whole number from {low} to {high}")
        return None

    def truth(self, table: str, row: str, name: str) -> bool:
        """Return a truth value, False where the field is missing; another value is a mistake."""
        value = self.get(table, row, name)
        if value is None:
            return False
        if str(value).lower() not in _TRUTH:
            self.refuse((table, row, name), shown(value), "true or false")
        return _TRUTH.get(str(value).lower(), False)

    def word(self, table: str, row: str, name: str, allowed: tuple[str, ...]) -> str | None:
        """Return a word, in lower case, None where the field is missing; another one is a mistake."""
        value = self.get(table, row, name)
        if value is None:
            return None
        if str(value).lower() in allowed:
            return str(value).lower()
        self.refuse((table, row, name), shown(value), ", ".join(allowed))
        return None

    def names(self, table: str, row: str, name: str) -> tuple[str, ...] | None:
        """Return a list of names, written as a list, or as text with commas (`name@` in a dump); None if missing."""
        value = self.get(table, row, name)
        value = self.get(table, row, f"{name}@") if value is None else value
        if value is None:
            return None
        if isinstance(value, str):
            value = [piece.group().strip() for piece in _PIECE.finditer(value)]
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return tuple(value)
        self.refuse((table, row, name), shown(value), "a list of names")
        return None

    def numbers(self, table: str, row: str, name: str) -> tuple[int, ...] | None:
        """Return priorities such as `3,4`, ascending, None where the field is missing."""
        names = self.names(table, row, name)
        if names is None:
            return None
        if all(re.fullmatch("[0-7]", entry) for entry in names):
            return tuple(sorted({int(entry) for entry in names}))
        self.refuse((table, row, name), shown(self.get(table, row, name)), "priorities from 0 to 7, as 3,4")
        return None

    def mapping(self, table: str, row: str, highest: int) -> tuple[tuple[int, int], ...] | None:
        """Return a map of numbers, such as DSCP to traffic class, in ascending order; None where it is missing."""
        fields = self.of(table).get(row)
        if fields is None:
            return None
        pairs: dict[int, int] = {}
        for name in fields:
            if not (re.fullmatch(r"\d{1,2}", name, re.ASCII) and int(name) <= highest):
                self.refuse((table, row, name), f"the key {shown(name)}", f"0 to {highest}")
            elif (value := self.number(table, row, name, (0, QUEUES[-1]))) is not None:
                pairs[int(name)] = value
        return tuple(sorted(pairs.items()))

    def reference(self, table: str, row: str, name: str) -> str | None:
        """Return the name of the row that a field refers to, None where the field is missing."""
        value = self.get(table, row, name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.refuse((table, row, name), shown(value), "the name of a row")
            return None
        match = _REFERENCE.fullmatch(value)
        return value if match is None else match[1] if match[1] is not None else match[2]

    def by_queue(self, table: str) -> Mapping[str, list[str | None]]:
        """Return the row of each queue of each port that a table's keys name; those of other hosts are left out."""
        rows: dict[str, list[str | None]] = {}
        known = self.of("PORT")
        for key in self.of(table):
            *owner, ports, numbers = ("", *key.split("|", 4))[-4:] if "|" in key else ("", key, "")
            match = _NUMBERS.fullmatch(numbers)
            if match is None or key.count("|") not in (1, 3):
                self.refuse((table, key), "a key without a queue", "port and queue, as Ethernet0|3 or Ethernet0|3-4")
            elif len(owner) < 2 or self._is_own(owner):
                queues = [queue for queue in range(int(match[1]), int(match[2] or match[1]) + 1) if queue in QUEUES]
                for port in (piece.group() for piece in _PIECE.finditer(ports)):
                    if port in known:
                        of_port = rows.setdefault(port, [None] * len(QUEUES))
                        for queue in queues:
                            of_port[queue] = key
        return rows

    def by_port(self, table: str) -> Mapping[str, str]:
        """Return the row of each port that a table's keys name."""
        known = self.of("PORT")
        return {
            port: key
            for key in self.of(table)
            for port in (piece.group() for piece in _PIECE.finditer(key))
            if port in known
        }

    def unread(self) -> Iterator[tuple[str, int, int, tuple[str, ...]]]:
        """Yield each table: its rows, how many of them nothing is read of, and the unread fields of the others."""
        for table in sorted(self.tables.by_name):
            rows = self.tables.rows(table) or {}
            read = self.read.get(table, {})
            rest = {name for row in read for name in rows[row] if not read[row] & self.bits.get(name, 0)}
            yield table, len(rows), sum(row not in read for row in rows), tuple(sorted(rest))

    def refuse(self, keys: tuple[str, ...], found: str, allowed: str) -> None:
        """Note a mistake at the place of a table, a row or a field."""
        self.mistakes[Mistake(where=self.where(*keys), found=found, allowed=allowed)] = None

    def _is_own(self, owner: list[str]) -> bool:
        metadata = self.of("DEVICE_METADATA").get("localhost", {})
        own = [str(metadata.get("hostname", "")), str(metadata.get("asic_name") or self.tables.asic)]
        return [text.lower() for text in owner] == [text.lower() for text in own]
