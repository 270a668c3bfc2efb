"""A settings file with some of its values changed elsewhere: on a command line, in a list of variants.

A change is a key path and a value as the file would write it: `fabric.num_hosts: 32`, `traffic.placement: contiguous`.
What is bound from the changed tree is checked as a file is; a mistake in a changed value names the place of the change,
and any other mistake its line.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foundation.documents import Document, Key, key_path
from foundation.errors import InputError, Mistake

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


def change(document: Document, changes: Changes, *, origin: str) -> ChangedDocument:
    """Return the document with `changes` made; `origin` says where they stand. Raises InputError."""
    tree = copy.deepcopy(document.tree)
    for path, value in changes.items():
        _put(tree, path, value, origin)
    return ChangedDocument(
        path=document.path,
        tree=tree,
        find_marks=document.find_marks,
        changed_paths=tuple(changes),
        origin=origin,
    )


def _put(tree: Any, path: str, value: Any, origin: str) -> None:
    """Set the value at a dotted path; mappings on the way that do not stand in the file are added."""
    *outer, last = path.split(".")
    for depth, key in enumerate(outer, start=1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            found = f"{'.'.join(outer[:depth])} is {tree!r}, which has no keys"
            raise InputError(Mistake(where=f"{origin}: {path}", found=found, next_step="set it as a whole mapping"))
    tree[last] = copy.deepcopy(value)  # a later change may reach into it
