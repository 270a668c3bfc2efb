"""JSON Schemas of settings files, for editors: names of keys and choices as they are typed, meanings, unknown keys.

A schema is looser than the check of the file, which it never contradicts: a quantity is a number or a text, and rules
between keys are left out. Draft 7, which yaml-language-server reads. A spec is a definition, so that one may hold
itself.

Source: JSON Schema draft 7, draft-handrews-json-schema-01 and its validation vocabulary.
"""

import dataclasses
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator

from fabrictune.foundation.extensions.tables import extensible
from fabrictune.foundation.settings.binding import (
    IMPLIED_CHOICE,
    PRESET,
    Choice,
    SpecChoice,
    choice_of,
    is_required,
    settings_of,
)
from fabrictune.foundation.settings.quantities import key_of, quantity_of

DRAFT = "http://json-schema.org/draft-07/schema#"
Json = dict[str, Any]
PLAIN: Mapping[Any, Json] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    Path: {"type": "string"},
}


def json_schema(root: type, title: str) -> Json:
    """Return the JSON Schema of a file that the spec `root` describes."""
    definitions: dict[str, Json] = {}
    head = {"$schema": DRAFT, "title": title, **_spec(root, definitions)}
    return {**head, "definitions": definitions}


def _spec(spec: Any, definitions: dict[str, Json]) -> Json:
    """Return what a spec's mapping is; one with FROM_TEXT may be a text."""
    mapping = {"$ref": _defined(spec, definitions)}
    return {"anyOf": [mapping, {"type": "string"}]} if hasattr(spec, "FROM_TEXT") else mapping


def _defined(spec: Any, definitions: dict[str, Json]) -> str:
    """Return the reference to a spec's mapping, which it defines once."""
    name = f"{spec.__module__.removeprefix('fabrictune.')}.{spec.__qualname__}"
    if name not in definitions:
        definitions[name] = {}  # so that a spec may hold itself
        definitions[name] |= _mapping(_properties(spec, definitions), _required(spec))
    return f"#/definitions/{name}"


def _properties(spec: Any, definitions: dict[str, Json]) -> dict[str, Json]:
    found = {}
    for field, hint in settings_of(spec):
        told = _told(field)
        value = _value(field.name, hint, field.metadata.get("one_of", ()), definitions)
        found[key_of(field.name)] = {**told, **value} if "$ref" not in value else {**told, "allOf": [value]}
    return found


def _told(field: "dataclasses.Field[Any]") -> Json:
    meaning = str(field.metadata.get("help", ""))
    return {"description": meaning} if meaning else {}


def _required(spec: Any) -> list[str]:
    return [key_of(field.name) for field, _ in settings_of(spec) if is_required(field)]


def _mapping(properties: Mapping[str, Json], required: list[str]) -> Json:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _value(name: str, hint: Any, one_of: Any, definitions: dict[str, Json]) -> Json:
    """Return the schema of a field's value."""
    if choice := choice_of(hint):
        return _choice(choice, definitions)
    if extensible(hint):
        return {"anyOf": [{"enum": list(one_of)}, {"type": "string"}]}
    if get_origin(hint) in (Union, types.UnionType):
        inner = next(entry for entry in get_args(hint) if entry is not types.NoneType)
        return {"anyOf": [_value(name, inner, one_of, definitions), {"type": "null"}]}
    if hasattr(hint, "__metadata__"):
        plain = _value(name, get_args(hint)[0], one_of, definitions)
        is_read_first = any(isinstance(entry, BeforeValidator) for entry in hint.__metadata__)
        return {"anyOf": [plain, {"type": ["string", "integer"]}]} if is_read_first else plain
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _value(name, get_args(hint)[0], one_of, definitions)}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if dataclasses.is_dataclass(hint):
        return _spec(hint, definitions)
    if quantity := quantity_of(name):
        return {"type": ["string", "number"], "title": quantity.what}
    if one_of and hint is str:
        return {"enum": list(one_of)}
    return dict(PLAIN.get(hint, {}))


def _choice(choice: Choice, definitions: dict[str, Json]) -> Json:
    """Return what any of a choice's specs takes, each with the key that names it."""
    options = []
    for name, spec in choice.specs.items():
        reference = _defined(spec, definitions)
        keys = {
            key_of(field.name): {"$ref": f"{reference}/properties/{key_of(field.name)}"}
            for field, _ in settings_of(spec)
        }
        named = [] if name in (IMPLIED_CHOICE, choice.default) else [choice.key]
        options.append(_mapping({choice.key: {"const": name}, **keys}, [*named, *_required(spec)]))
        if isinstance(choice, SpecChoice):
            presets = [preset for preset, known in choice.presets.items() if type(known) is spec]
            options[-1]["properties"][PRESET] = {"enum": presets}
            options.append({**options[-1], "required": [PRESET]})
    if choice.takes_files:
        file = {"type": "string", "pattern": r"[./]", "description": "Python file of an extension"}
        options.append({"type": "object", "properties": {choice.key: file}, "required": [choice.key]})
    if choice.from_text:
        options.append({"anyOf": [{"enum": list(choice.specs)}, {"type": "string"}]})
    return {"anyOf": options}
