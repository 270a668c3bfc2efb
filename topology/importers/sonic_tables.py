"""Tables of SONiC's databases, whatever form the file has, and the place of each value.

Tables come nested, flat as `TABLE|key`, or flat as a Redis dump, whose rows are below `value`. The namespaces of a
switch with several ASICs may share a file, as `show runningconfiguration all` prints them: `localhost` for the host,
`asic0` and so on, each with tables of its own. A dump of APPL_DB has rows `TABLE_TABLE:key`: what the switch made of
its configuration when it ran. Its buffers may take the place of the configuration's (`with_running`).

Source: SONiC, doc/Configuration.md; sonic-utilities, `show runningconfiguration all`; redis-dump for the form of dumps;
sonic-swss-common, schema.h (names of APPL_DB).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fabrictune.foundation.documents import Document, Key

HOST_NAMESPACE = "localhost"
RUNNING_TABLES = ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE")
Rows = Mapping[str, Mapping[str, Any]]

_NAMESPACE = re.compile(r"localhost|asic\d{1,3}")
_RUNNING = re.compile(rf"({'|'.join(RUNNING_TABLES)})_TABLE:(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class SonicTables:
    """The tables of one namespace of a file."""

    document: Document
    tree: Mapping[str, Any]
    namespace: str = ""  # where a file has several
    running: "SonicTables | None" = None  # of APPL_DB, whose buffers go first

    @property
    def asic(self) -> str:
        """The ASIC that the namespace is named after, "" for the host's and that of a file with one."""
        return "" if self.namespace == HOST_NAMESPACE else self.namespace

    @cached_property
    def configured(self) -> Mapping[str, Any]:
        """The file's own tables by name, each a mapping of rows unless the file is broken."""
        tables: dict[str, Any] = {}
        for key, row in self.tree.items():
            table, name = _split(key)
            if not name:
                tables.setdefault(table, row)
            elif isinstance(rows := tables.setdefault(table, {}), dict):
                rows[name] = row["value"] if _is_dumped(row) else row
        return tables

    @cached_property
    def by_name(self) -> Mapping[str, Any]:
        """Tables by name, with those of the running switch in place of the file's."""
        if self.running is None:
            return self.configured
        return {**self.configured, **{name: self.running.by_name[name] for name in self._from_running}}

    def with_running(self, running: "SonicTables") -> "SonicTables":
        """Return the tables with the buffers of a dump of APPL_DB."""
        return replace(self, running=running)

    def rows(self, table: str) -> Rows | None:
        """Return the rows of a table, empty where it is missing, None where it has another form."""
        rows = self.by_name.get(table, {})
        is_right = isinstance(rows, dict) and all(isinstance(row, dict) for row in rows.values())
        return rows if is_right else None

    def where(self, table: str, *keys: Key) -> str:
        """Return the place of a value in the form the file has."""
        if self.running is not None and table in self._from_running:
            return self.running.where(table, *keys)
        outer = (self.namespace,) if self.namespace else ()
        row = next((key for key in _spellings(table, keys) if key in self.tree), None)
        if row is None:
            return self.document.where(*outer, table, *keys)
        dumped = ("value",) if len(keys) > 1 and _is_dumped(self.tree[row]) else ()
        return self.document.where(*outer, row, *dumped, *keys[1:])

    @property
    def _from_running(self) -> tuple[str, ...]:
        return tuple(name for name in RUNNING_TABLES if self.running is not None and name in self.running.by_name)


def tables_in(document: Document) -> Iterator[SonicTables]:
    """Yield the tables of each namespace of a file; of the host's own only where no ASIC is beside it."""
    tree = document.tree if isinstance(document.tree, dict) else {}
    if not tree or not all(_NAMESPACE.fullmatch(key) and isinstance(value, dict) for key, value in tree.items()):
        yield SonicTables(document=document, tree=tree)
        return
    for name, inner in tree.items():
        if name != HOST_NAMESPACE or len(tree) == 1:
            yield SonicTables(document=document, tree=inner, namespace=name)


def _split(key: str) -> tuple[str, str]:
    """Return the table and the row of a key, "" for the row of a table as a whole."""
    if match := _RUNNING.fullmatch(key):
        return match[1], match[2].replace(":", "|")
    table, _, name = key.partition("|")
    return table, name


def _spellings(table: str, keys: tuple[Key, ...]) -> tuple[str, ...]:
    """Return the keys that a row may have in a flat file."""
    if not keys:
        return ()
    return f"{table}|{keys[0]}", f"{table}_TABLE:{str(keys[0]).replace('|', ':')}"


def _is_dumped(row: object) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("value"), dict):
        return False
    return row.get("type") == "hash" or len(row) == 1
