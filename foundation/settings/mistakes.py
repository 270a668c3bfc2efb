"""Translation of pydantic's errors to Mistakes: place, value found, values allowed, nearest name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pydantic import ValidationError

from fabrictune.foundation.documents import Key
from fabrictune.foundation.errors import MAX_TOLD, Mistake, nearest_name

MAX_SHOWN = 60

NEEDED: Mapping[str, str] = {  # what a value should have been, by pydantic's name of the error
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "mapping": "a mapping of keys to values",
    "list": "a list",
    "path": "the name of a file",
    "quantity_type": "a number with its unit",
}


class Places(Protocol):
    """The place of keys: a Document, or a command line."""

    def where(self, *keys: Key) -> str:
        """Return the place for people."""

    def line(self, *keys: Key) -> int:
        """Return the line, by which mistakes are sorted."""


def to_mistakes(error: ValidationError, places: Places, *prefix: str) -> list[Mistake]:
    """Return every mistake in `error` at its place in `places`; `prefix` leads to the mapping that was checked.

    The nearest name is looked for in the first MAX_TOLD only, since no others are told.
    """
    details: list[dict[str, Any]] = [dict(detail) for detail in error.errors(include_url=False)]
    details.sort(key=lambda detail: places.line(*prefix, *detail["loc"]))
    return [
        _explain_one(detail, places, prefix, seeks_nearest=place < MAX_TOLD) for place, detail in enumerate(details)
    ]


def _explain_one(detail: dict[str, Any], places: Places, prefix: tuple[str, ...], *, seeks_nearest: bool) -> Mistake:
    keys = (*prefix, *detail["loc"])
    place = places.where(*keys)
    name = str(keys[-1]) if keys else ""
    if detail["type"] == "unknown_key" and not seeks_nearest:
        return Mistake(where=place, found=f"unknown key {name!r}", allowed=", ".join(detail["ctx"]["allowed"]))
    return _words(detail, place, name)


def _words(detail: dict[str, Any], where: str, name: str) -> Mistake:
    kind: str = detail["type"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    value = detail["input"]
    match kind:
        case "mistake":
            mistake: Mistake = context["mistake"]
            return replace(mistake, where=where)
        case "missing":
            return Mistake(where=where, found="missing", next_step=f"add the key {name!r}")
        case "unknown_key":
            return _not_among(where, f"unknown key {name!r}", name, context["allowed"], context.get("known_as"))
        case "no_choice":
            found = f"no key {context['key']!r} to say which is meant"
            return Mistake(where=where, found=found, allowed=", ".join(context["allowed"]))
        case "unknown_choice":
            found = f"unknown {name} {_shown(value)}"
            return _not_among(where, found, value, context["allowed"], context.get("known_as"))
        case "literal_error":
            return _not_among(where, _shown(value), value, re.findall(r"'([^']*)'", context["expected"]))
        case "greater_than_equal":
            return Mistake(where=where, found=_shown(value), allowed=f"{context['ge']} or more")
        case "less_than_equal":
            return Mistake(where=where, found=_shown(value), allowed=f"{context['le']} or less")
        case _ if kind in NEEDED:
            return Mistake(where=where, found=f"{_shown(value)} where {NEEDED[kind]} is needed")
    return Mistake(where=where, found=f"{_shown(value)}: {detail['msg']}")


def _not_among(
    where: str, found: str, name: object, allowed: Sequence[str], known_as: Mapping[str, str] | None = None
) -> Mistake:
    """Return a mistake whose nearest name is the one that others call `name`, or else the one most like it."""
    by_name = {other.lower(): own for other, own in (known_as or {}).items()}
    nearest = by_name.get(str(name).lower()) or nearest_name(str(name), allowed)
    return Mistake(where=where, found=found, allowed=", ".join(allowed), nearest=nearest)


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
