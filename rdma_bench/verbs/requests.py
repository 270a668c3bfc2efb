"""Specifications from the requests of a measurement, checked: no unknown key, no value of another type."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote

Spec = TypeVar("Spec")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_FITS: Mapping[Any, Callable[[Any], bool]] = {
    int: _is_whole,
    float: lambda value: _is_whole(value) or isinstance(value, float),
    bool: lambda value: isinstance(value, bool),
    str: lambda value: isinstance(value, str),
    tuple[int, ...]: lambda value: isinstance(value, list) and all(map(_is_whole, value)),
}
_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple[int, ...]: "whole numbers",
}


def parse_spec(kind: type[Spec], values: Any, *, where: str) -> Spec:
    """Return a dataclass of numbers, text and tuples of numbers; raises InputError with every mistake."""
    if not isinstance(values, dict):
        raise InputError(Mistake(where=where, found=quote(repr(values)), allowed="a JSON object"))
    hints = get_type_hints(kind)
    mistakes = []
    for name in values:
        if name not in hints:
            nearest = nearest_name(name, hints)
            allowed = ", ".join(hints)
            mistakes.append(Mistake(where=f"{where}.{name}", found="unknown key", allowed=allowed, nearest=nearest))
        elif not _FITS.get(hints[name], _FITS[str])(values[name]):  # what has names for its values is text
            mistakes.append(
                Mistake(
                    where=f"{where}.{name}", found=quote(repr(values[name])), allowed=_WORDS.get(hints[name], "text")
                )
            )
    mistakes.extend(
        Mistake(where=f"{where}.{field.name}", found="missing")
        for field in fields(kind)  # type: ignore[arg-type]
        if field.default is MISSING and field.name not in values
    )
    if mistakes:
        raise InputError(*mistakes)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
