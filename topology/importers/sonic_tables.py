"""Tables of SONiC's CONFIG_DB, whatever form the file has, and the place of each value.

Tables come nested, flat as `TABLE|key`, or flat as a Redis dump, whose rows are below `value`. The namespaces of a
switch with several ASICs may share a file, as `show runningconfiguration all` prints them: `localhost` for the host,
`asic0` and so on, each with tables of its own.

Source: SONiC, doc/Configuration.md; sonic-utilities, `show runningconfiguration all`; redis-dump for the form of dumps.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fabrictune.foundation.documents import Document, Key

HOST_NAMESPACE = "localhost"
Rows = Mapping[str, Mapping[str, Any]]

_NAMESPACE = re.compile(r"localhost|asic\d{1,3}")


@dataclass(frozen=True, kw_only=True)
class SonicTables:
    """The tables of one namespace of a file."""

    document: Document
    tree: Mapping[str, Any]
    namespace: str = ""  # where a file has several

    @property
    def asic(self) -> str:
        """The ASIC that the namespace is named after, "" for the host's and that of a file with one."""
        return "" if self.namespace == HOST_NAMESPACE else self.namespace

    @cached_property
    def is_flat(self) -> bool:
        """Whether rows are named `TABLE|key`."""
        return any("|" in key for key in self.tree)

    @cached_property
    def by_name(self) -> Mapping[str, Any]:
        """Tables by name, each a mapping of rows unless the file is broken."""
        if not self.is_flat:
            return self.tree
        tables: dict[str, dict[str, Any]] = {}
        for key, row in self.tree.items():
            table, _, name = key.partition("|")
            tables.setdefault(table, {})[name] = row["value"] if _is_dumped(row) else row
        return tables

    def rows(self, table: str) -> Rows | None:
        """Return the rows of a table, empty where it is missing, None where it has another form."""
        rows = self.by_name.get(table, {})
        is_right = isinstance(rows, dict) and all(isinstance(row, dict) for row in rows.values())
        return rows if is_right else None

    def where(self, table: str, *keys: Key) -> str:
        """Return the place of a value in the form the file has."""
        outer = (self.namespace,) if self.namespace else ()
        if not self.is_flat or not keys:
            return self.document.where(*outer, table, *keys)
        row = f"{table}|{keys[0]}"
        dumped = ("value",) if len(keys) > 1 and _is_dumped(self.tree.get(row)) else ()
        return self.document.where(*outer, row, *dumped, *keys[1:])


def tables_in(document: Document) -> Iterator[SonicTables]:
    """Yield the tables of each namespace of a file; of the host's own only where no ASIC is beside it."""
    tree = document.tree if isinstance(document.tree, dict) else {}
    if not tree or not all(_NAMESPACE.fullmatch(key) and isinstance(value, dict) for key, value in tree.items()):
        yield SonicTables(document=document, tree=tree)
        return
    for name, inner in tree.items():
        if name != HOST_NAMESPACE or len(tree) == 1:
            yield SonicTables(document=document, tree=inner, namespace=name)


def _is_dumped(row: object) -> bool:
    return isinstance(row, dict) and row.get("type") == "hash" and isinstance(row.get("value"), dict)
