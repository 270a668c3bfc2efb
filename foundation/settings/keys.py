"""The keys a settings file may have, listed from the specs that also check it: key, what it takes, default, meaning."""

import dataclasses
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from fabrictune.foundation.errors import InputError, require_one_of
from fabrictune.foundation.settings.binding import choice_of, settings_of
from fabrictune.foundation.settings.quantities import format_setting, key_of, quantity_of

TYPES: Mapping[Any, str] = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    Path: "file",
    Any: "number with its unit",
}


@dataclass(frozen=True, kw_only=True)
class KeyLine:
    """One key of a mapping."""

    key: str
    takes: str
    default: str
    meaning: str


def sections(root: type, root_name: str) -> dict[str, type]:
    """Return the mappings of a file by name: itself as `root_name`, and `engine`, `fabric.clos`, `law.dcqcn` and so on.

    A choice without keys of its own is left out; the keys of a default choice are those of its field: `engine`.
    """
    found = {root_name: root}
    for field, hint in settings_of(root):
        if choice := choice_of(_one_of(hint)):
            with_keys = {name: spec for name, spec in choice.specs.items() if settings_of(spec)}
            key = key_of(field.name)
            found |= {key if name == choice.default else f"{key}.{name}": spec for name, spec in with_keys.items()}
        elif spec := _spec_in(hint):
            found[key_of(field.name)] = spec
    return found


def list_keys(known: Mapping[str, type], section: str) -> list[KeyLine]:
    """Return the keys of one of the `sections`, nested mappings written `outer.inner`, except those of the first.

    Of a key that chooses one of several mappings, as `traffic`, their sections and what each is. Raises InputError for
    a section that is not known.
    """
    if section not in known and (chosen := [name for name in known if name.startswith(f"{section}.")]):
        return [KeyLine(key=name, takes="section", default="", meaning=_summary(known[name])) for name in chosen]
    require_one_of(section, tuple(known), where="SECTION", what="section", error=InputError)
    return list(_lines(known[section], "", is_nested_listed=section != next(iter(known))))


def _summary(spec: type) -> str:
    """Return the first line of a spec's docstring, "" for one that was made without."""
    text = spec.__doc__ or ""
    return "" if text.startswith(f"{spec.__name__}(") else text.partition("\n")[0]


def _lines(spec: type, prefix: str, *, is_nested_listed: bool) -> Iterator[KeyLine]:
    for field, hint in settings_of(spec):
        key = prefix + key_of(field.name)
        nested = _spec_in(hint)
        is_list = get_origin(_without_none(hint)) is tuple
        takes = " | ".join(field.metadata.get("one_of", ())) or _takes(field.name, hint)
        if nested:
            takes = "list of keys" if is_list else "keys"
            takes += "" if is_nested_listed else f", see `{key}`"
        yield KeyLine(key=key, takes=takes, default=_default(field), meaning=str(field.metadata.get("help", "")))
        if nested and is_nested_listed:
            yield from _lines(nested, f"{key}.", is_nested_listed=True)


def _takes(name: str, hint: Any) -> str:
    """Return in words what a key takes."""
    hint = _without_none(hint)
    if choice := choice_of(hint):
        return f"{choice.key}: {' | '.join(choice.specs)}"
    if hasattr(hint, "__metadata__"):
        hint = get_args(hint)[0]
    if get_origin(hint) is tuple:
        return f"list of {_takes(name, get_args(hint)[0])}"
    if get_origin(hint) is Literal:
        return " | ".join(str(value) for value in get_args(hint))
    quantity = quantity_of(name)
    if quantity:
        return quantity.what
    return TYPES.get(hint, "keys")


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(entry for entry in get_args(hint) if entry is not types.NoneType)
    return hint


def _one_of(hint: Any) -> Any:
    """Return the type of one entry where the field is a list, else the field's own."""
    hint = _without_none(hint)
    return get_args(hint)[0] if get_origin(hint) is tuple else hint


def _spec_in(hint: Any) -> type | None:
    """Return the spec that a field holds, one or a list of them, if it does."""
    inner = _one_of(hint)
    return inner if isinstance(inner, type) and dataclasses.is_dataclass(inner) else None


def _default(field: "dataclasses.Field[Any]") -> str:
    """Return a field's default as a file would write it, "" where it has none that could be written."""
    if field.default is dataclasses.MISSING:
        return "" if field.default_factory is not dataclasses.MISSING else "required"
    value = field.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return format_setting(field.name, value)
    if isinstance(value, tuple) and all(isinstance(entry, str) for entry in value):
        return ", ".join(value)
    return value if isinstance(value, str) else ""
