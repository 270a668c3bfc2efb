"""Extensions that installed packages bring: by table, with package, version and whether they can be used."""

from dataclasses import dataclass
from typing import Any, Literal

from fabrictune.cc.laws import LAWS
from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.extensions.tables import Table
from fabrictune.topology.builders import BUILDERS
from fabrictune.topology.hashing import HASHES
from fabrictune.topology.importers import IMPORTERS

TABLES: tuple[Table[Any], ...] = (BUILDERS, IMPORTERS, HASHES, ALGORITHMS, LAWS)


@dataclass(frozen=True, kw_only=True)
class ExtensionStatus:
    """An entry point of a package, and its state."""

    kind: str  # "hash function"
    name: str  # as a scenario names it
    package: str
    version: str
    target: str  # "my_package.ring:BUILDER"
    state: Literal["ok", "hidden", "unusable"]
    detail: str = ""


def list_installed() -> list[ExtensionStatus]:
    """Return every extension of an installed package; each is imported, because only that shows whether it works."""
    return [status for table in TABLES for status in (*_usable(table), *_hidden(table))]


def _usable(table: Table[Any]) -> list[ExtensionStatus]:
    return [_tried(table, name) for name in table.installed]


def _tried(table: Table[Any], name: str) -> ExtensionStatus:
    described = {"kind": table.kind.what, **vars(table.installed[name])}
    try:
        table[name]
    except InputError as error:
        return ExtensionStatus(**described, state="unusable", detail=str(error.mistakes[0]))
    return ExtensionStatus(**described, state="ok")


def _hidden(table: Table[Any]) -> list[ExtensionStatus]:
    detail = "the project, or another package, has an entry of this name"
    return [
        ExtensionStatus(kind=table.kind.what, **vars(entry), state="hidden", detail=detail) for entry in table.hidden
    ]
