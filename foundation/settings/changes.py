"""A settings file with some of its values changed elsewhere: on a command line, in a list of variants.

A change is a key path and a value as the file would write it: `fabric.num_hosts: 32`, `traffic.placement: contiguous`,
`traffic.parts[0].start: 5 us`.
What is bound from the changed tree is checked as a file is; a mistake in a changed value names the place of the change,
and any other mistake its line.
"""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.documents import Document, Key, key_path
from fabrictune.foundation.errors import InputError, Mistake

Changes = Mapping[str, Any]  # key path -> value

_INDEX = re.compile(r"\[(\d{1,6})\]")
_PIECE = re.compile(rf"[^\[\]]+(?:{_INDEX.pattern})+|[^\[\]]+")


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
    """Return the document with `changes` made; `origin` says where they are. Raises InputError.

    The text of a changed document is its values as JSON, which is YAML too.
    """
    tree = copy.deepcopy(document.tree)
    for path, value in changes.items():
        _put(tree, path, value, origin)
    return ChangedDocument(
        path=document.path,
        text=json.dumps(tree, indent=2, default=str) if changes else document.text,
        tree=tree,
        find_marks=document.find_marks,
        changed_paths=tuple(changes),
        origin=origin,
    )


def _put(tree: Any, path: str, value: Any, origin: str) -> None:
    """Set the value at a path; mappings that are missing on the way are added, entries of lists are not."""
    *outer, last = _keys(path)
    for depth, key in enumerate(outer, start=1):
        _require_place(tree, key, outer[: depth - 1], f"{origin}: {path}")
        tree = tree[key] if isinstance(key, int) else tree.setdefault(key, {})
    _require_place(tree, last, outer, f"{origin}: {path}")
    tree[last] = copy.deepcopy(value)  # a later change may reach into it


def _keys(path: str) -> list[Key]:
    """Return the keys of a path: `parts[0].name` is "parts", 0, "name"."""
    keys: list[Key] = []
    for piece in path.split("."):
        name, *indices = _INDEX.split(piece)
        keys += [name, *(int(index) for index in indices[::2])] if _PIECE.fullmatch(piece) else [piece]
    return keys


def _require_place(tree: Any, key: Key, outer: Sequence[Key], where: str) -> None:
    """Raise InputError where a mapping has no keys, or a list no such entry."""
    if isinstance(key, str) and not isinstance(tree, dict):
        found = f"{key_path(outer)} is {tree!r}, which has no keys"
        raise InputError(Mistake(where=where, found=found, next_step="set it as a whole mapping"))
    if isinstance(key, int) and not (isinstance(tree, list) and key < len(tree)):
        found = f"{key_path(outer)} has no entry {key}"
        allowed = f"0 to {len(tree) - 1}" if isinstance(tree, list) and tree else ""
        raise InputError(Mistake(where=where, found=found, allowed=allowed, next_step="set it as a whole list"))
