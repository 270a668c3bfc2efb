"""A scenario with some of its settings changed: the same file, other values, all checks.

A change is a key path and a value as the file would write it: `fabric.num_hosts: 32`, `traffic.placement: contiguous`.
The changed scenario is bound anew from the changed tree, so that every rule holds of it as of a file; a mistake in a
changed value names the place of the change, and any other mistake its line.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from fabrictune.scenario.binding import bind
from fabrictune.scenario.mistakes import explain
from fabrictune.scenario.schema import Scenario
from foundation.documents import Document, Key, key_path
from foundation.errors import InputError, Mistake, ScenarioError

Changes = Mapping[str, Any]  # dotted key path -> value


@dataclass(frozen=True, kw_only=True)
class ChangedDocument(Document):
    """A document of which some keys were changed elsewhere: their places are there."""

    changed_paths: tuple[str, ...]
    origin: str

    def where(self, *keys: Key) -> str:
        """Return where the change stands if it set one of `keys`, and the line of the file if none did."""
        path = key_path(keys)
        if any(path == changed or path.startswith((f"{changed}.", f"{changed}[")) for changed in self.changed_paths):
            return f"{self.origin}: {path}"
        return super().where(*keys)


def override(scenario: Scenario, changes: Changes, *, origin: str) -> Scenario:
    """Return the scenario with `changes` made; `origin` says where they stand. Raises ScenarioError, InputError."""
    document = scenario.document
    assert document is not None, "only what came from a file can be written anew"
    tree = copy.deepcopy(document.tree)
    for path, value in changes.items():
        _put(tree, path, value, origin)
    changed = ChangedDocument(
        path=document.path,
        tree=tree,
        find_marks=document.find_marks,
        changed_paths=tuple(changes),
        origin=origin,
    )
    try:
        bound = bind(Scenario, tree, folder=document.path.parent)
    except ValidationError as error:
        raise ScenarioError(*explain(error, changed)) from None
    return replace(bound, document=changed)


def _put(tree: Any, path: str, value: Any, origin: str) -> None:
    """Set the value at a dotted path; mappings on the way that do not stand in the file are added."""
    *outer, last = path.split(".")
    for depth, key in enumerate(outer, start=1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            found = f"{'.'.join(outer[:depth])} is {tree!r}, which has no keys"
            raise InputError(Mistake(where=f"{origin}: {path}", found=found, next_step="set it as a whole mapping"))
    tree[last] = value
