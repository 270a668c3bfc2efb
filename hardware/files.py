"""Files of hardware profiles, and bundled profiles by name, read, checked and written.

A file with the key `base` has the values of that bundled profile where it sets none; what it sets needs a source of its
own. The sources of the base stay with its values.
"""

import copy
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from fabrictune.foundation.documents import Document, load_yaml
from fabrictune.foundation.errors import InputError, Mistake, nearest_name
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.settings.binding import bind
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.foundation.settings.quantities import key_of, setting_value
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.hardware.sources import covering_key

MAX_PROFILE_BYTES = 2**18
SUFFIX = ".yaml"
FOLDER = Path(__file__).parent / "profiles"
DEFAULT_PROFILE = "a100"  # MegaScale's GPU


def profile_names() -> list[str]:
    """Return the names of the bundled profiles."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def find_profile(text: str, *, where: str = "") -> HardwareProfile:
    """Return the bundled profile of a name, in any case of its letters, or that of a file; raises InputError."""
    names = profile_names()
    if text.lower() in names:
        return bundled_profile(text.lower())
    path = Path(text)
    if path.suffix or path.exists():
        return load_profile(path)
    raise InputError(_unknown(text, where))


@cache
def bundled_profile(name: str) -> HardwareProfile:
    """Return a bundled profile."""
    return load_profile(FOLDER / f"{name}{SUFFIX}")


def profile_of_device(device_name: str) -> HardwareProfile | None:
    """Return the bundled profile whose part of the device's name is longest, None for a GPU that none describes."""
    parts = {part: name for name in profile_names() for part in bundled_profile(name).gpu.device_names}
    longest = max((part for part in parts if part in device_name), key=len, default=None)
    return None if longest is None else bundled_profile(parts[longest])


def load_profile(path: Path) -> HardwareProfile:
    """Return the profile in a YAML file; raises InputError with every mistake found."""
    document = load_yaml(path, max_bytes=MAX_PROFILE_BYTES)
    try:
        return bind(HardwareProfile, _with_base(document), folder=path.parent)
    except ValidationError as error:
        raise InputError(*to_mistakes(error, document)) from None


def write_profile(profile: HardwareProfile, path: Path) -> Path:
    """Write a profile, complete and without rounding, for `load_profile`; raises InputError. Returns the path."""
    text = yaml.safe_dump(_tree(replace(profile, base="")), sort_keys=False)
    with replaced_file(path) as half:
        half.write_text(text)
    return path


def _unknown(name: str, where: str) -> Mistake:
    names = profile_names()
    found = f"{name!r}: no hardware profile of this name, and no file"
    return Mistake(
        where=where,
        found=found,
        allowed=f"{', '.join(names)}, or a file",
        nearest=nearest_name(name.lower(), names),
        next_step="fabrictune hardware list",
    )


def _with_base(document: Document) -> Any:
    """Return the keys of a file, and those of its base where it has none."""
    tree = document.tree
    if not isinstance(tree, dict) or not isinstance(tree.get("base"), str) or not tree["base"]:
        return tree
    if tree["base"] not in profile_names():
        mistake = _unknown(tree["base"], document.where("base"))
        raise InputError(replace(mistake, allowed=", ".join(profile_names())))
    base = bundled_profile(tree["base"])
    keys = {name: value for name, value in tree.items() if name not in ("sources", "uncertainties")}
    merged = _merged(_tree(base), keys)
    for section, own in (("sources", base.sources), ("uncertainties", base.uncertainties)):
        given = tree.get(section, {})
        if isinstance(given, dict):
            kept = _inherited(base, own, keys)
            given = {key: value for key, value in kept.items() if not _is_restated(section, key, given)} | given
        merged[section] = given
    return merged


def _merged(base: Any, changes: Any) -> Any:
    """Return nested mappings with changes made; a list is changed as a whole."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return copy.deepcopy(changes)
    return {**base, **{key: _merged(base.get(key), value) for key, value in changes.items()}}


def _inherited(base: HardwareProfile, of_base: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a base says of the values that are kept of it, each by its own key."""
    covered = {key: covering_key(key, of_base) for key in base.values()}
    return {key: of_base[name] for key, name in covered.items() if name is not None and not _is_set(keys, key)}


def _is_restated(section: str, key: str, given: Mapping[str, Any]) -> bool:
    """Return whether a file says of a base's value what the base says too: its uncertainty may be that of a section."""
    return section == "uncertainties" and covering_key(key, given) is not None


def _is_set(keys: Any, dotted: str) -> bool:
    """Return whether nested mappings have a key."""
    for part in dotted.split("."):
        if not isinstance(keys, dict) or part not in keys:
            return False
        keys = keys[part]
    return True


def _tree(spec: Any) -> dict[str, Any]:
    """Return a spec as a file has it, without what is not set."""
    found: dict[str, Any] = {}
    for field in fields(spec):
        value = getattr(spec, field.name)
        if is_dataclass(value):
            found[key_of(field.name)] = _tree(value)
        elif isinstance(value, tuple):
            found[key_of(field.name)] = [_tree(entry) if is_dataclass(entry) else entry for entry in value]
        elif value not in (None, "", {}):
            found[key_of(field.name)] = setting_value(field.name, value)
    return found
