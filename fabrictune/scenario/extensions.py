"""Extensions that a scenario names: loaded with the user's leave, and listed for its record.

Topologies, importers, hash functions and collectives are loaded with the scenario, because nothing can be composed
without them. A law is loaded where a run needs it.
"""

import dataclasses
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import LAW, LAWS
from fabrictune.foundation.documents import Document
from fabrictune.foundation.extensions.kinds import Extension, Kind
from fabrictune.foundation.extensions.tables import Extensible, Table, extensible
from fabrictune.foundation.settings.binding import Chosen, settings_of
from fabrictune.scenario.fabrics import load_builder
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.builders import BUILDERS, TOPOLOGY

EXTENSIBLE_KEYS = ("fabric", "routing", "traffic")

Change = Callable[[Any, Extensible], Any]


def load_extensions(scenario: Scenario, document: Document, *, trust_code: bool) -> Scenario:
    """Return the scenario with what its files hold in the place of their paths, and the user's leave for its law.

    Raises UntrustedCodeError for a file without `trust_code`, and InputError for one that cannot be used.
    """

    def load(value: Any, annotation: Extensible) -> Any:
        return annotation.table.load(value, trust_code=trust_code) if isinstance(value, Path) else value

    fabric = load_builder(scenario.fabric, document, "fabric", folder=document.path.parent, trust_code=trust_code)
    scenario = replace(scenario, fabric=fabric, trust_code=trust_code)
    return replace(scenario, **{key: _changed(getattr(scenario, key), load) for key in EXTENSIBLE_KEYS})


def describe_extensions(scenario: Scenario, law: CompiledLaw | None = None) -> list[dict[str, str]]:
    """Return kind, file and SHA-256 of each file, and kind, name, package and version of each installed entry."""
    found: list[dict[str, str]] = [*_describe(scenario.fabric.extension or scenario.fabric.name, TOPOLOGY, BUILDERS)]

    def note(value: Any, annotation: Extensible) -> Any:
        found.extend(_describe(value, annotation.table.kind, annotation.table))
        return value

    for key in EXTENSIBLE_KEYS:
        _changed(getattr(scenario, key), note)
    found += _describe(scenario.law.name, LAW, LAWS)
    if law is not None and law.file_sha256:
        found.append({"kind": LAW.what, "file": str(scenario.law.spec.file), "sha256": law.file_sha256})
    return list({tuple(entry.items()): entry for entry in found}.values())


def _describe(value: object, kind: Kind[Any], table: Table[Any]) -> Iterator[dict[str, str]]:
    if isinstance(value, Extension):
        yield {"kind": kind.what, "file": str(value.file), "sha256": value.sha256}
    elif isinstance(value, str) and value not in table.own and value in table:
        entry = table.installed[value]
        yield {"kind": kind.what, "name": value, "package": entry.package, "version": entry.version}


def _changed(value: Any, change: Change) -> Any:
    """Return settings with `change` made to every field that takes an extension; unchanged, the same object."""
    if isinstance(value, tuple):
        entries = tuple(_changed(entry, change) for entry in value)
        return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
    if isinstance(value, Chosen):
        spec = _changed(value.spec, change)
        return value if spec is value.spec else replace(value, spec=spec)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    fields = {}
    for field, hint in settings_of(type(value)):
        old = getattr(value, field.name)
        annotation = extensible(_without_none(hint))
        new = change(old, annotation) if annotation else _changed(old, change)
        if new is not old:
            fields[field.name] = new
    return replace(value, **fields) if fields else value


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(entry for entry in get_args(hint) if entry is not types.NoneType)
    return hint
