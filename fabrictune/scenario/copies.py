"""A scenario's text for another folder: changed keys, and the files it names found from there.

Keys that hold the name of a file are those of its specs, and texts that begin with `./` or `../`, as a law of one's own
has. The text is JSON, which is YAML too.
"""

import copy
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import Key, key_path
from fabrictune.foundation.settings.binding import Chosen, settings_of
from fabrictune.foundation.settings.changes import change
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.scenario.schema import Scenario

OWN_CODE = ("./", "../")  # how the names of files begin that no spec knows as such


def copy_text(scenario: Scenario, changes: Mapping[str, Any], folder: Path, *, drop: Collection[str] = ()) -> str:
    """Return the text of a scenario in `folder` with `changes` made and the keys at the paths `drop` left out.

    Files that `changes` name are taken as they are. Raises InputError for a change that fits no key.
    """
    assert scenario.document is not None, "only what came from a file can be written anew"
    tree = _moved(scenario, folder)
    _drop(tree, drop)
    document = type(scenario.document)(**{**vars(scenario.document), "tree": tree})
    return json.dumps(change(document, changes, origin="copy").tree, indent=2, default=str) + "\n"


def _moved(scenario: Scenario, folder: Path) -> Any:
    assert scenario.document is not None, "see copy_text"
    old = scenario.document.path.parent
    is_file = {key_path(keys) for keys in _file_keys(scenario)}

    def moved(value: Any, keys: tuple[Key, ...]) -> Any:
        if isinstance(value, dict):
            return {key: moved(entry, (*keys, key)) for key, entry in value.items()}
        if isinstance(value, list):
            return [moved(entry, (*keys, row)) for row, entry in enumerate(value)]
        if isinstance(value, str) and (key_path(keys) in is_file or value.startswith(OWN_CODE)):
            return value if Path(value).is_absolute() else os.path.relpath(old / value, folder)
        return copy.deepcopy(value)

    return moved(scenario.document.tree, ())


def _drop(tree: Any, paths: Collection[str]) -> None:
    """Remove keys of mappings, `traffic.parts.0.traffic.hosts`, as far as they are there."""
    for path in paths:
        *outer, last = path.split(".")
        place = tree
        for key in outer:
            place = place[int(key)] if isinstance(place, list) else place.get(key, {})
        place.pop(last, None)


def _file_keys(spec: Any, keys: tuple[Key, ...] = ()) -> Iterator[tuple[Key, ...]]:
    """Yield the keys of every file that a spec names."""
    for field, _ in settings_of(type(spec)):
        yield from _files_in(getattr(spec, field.name), (*keys, key_of(field.name)))


def _files_in(value: Any, keys: tuple[Key, ...]) -> Iterator[tuple[Key, ...]]:
    if isinstance(value, Path):
        yield keys
    elif isinstance(value, tuple):
        for row, entry in enumerate(value):
            yield from _files_in(entry, (*keys, row))
    elif isinstance(value, Chosen):
        yield from _files_in(value.spec, keys)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _file_keys(value, keys)
