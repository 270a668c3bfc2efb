"""Rules of a profile's values, as mistakes at their fields."""

from collections.abc import Iterable, Sequence
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.settings.quantities import format_setting


def raise_for(mistakes: Iterable[Mistake]) -> None:
    """Raise InputError with the mistakes, if there are any."""
    if found := list(mistakes):
        raise InputError(*found)


def above_zero(spec: Any, besides: Sequence[str] = ()) -> Iterable[Mistake]:
    """Yield the numbers of a spec that are not above zero."""
    for name, value in vars(spec).items():
        if isinstance(value, int | float) and name not in besides and not value > 0:
            yield Mistake(where=name, found=format_setting(name, value), allowed="above 0")


def not_negative(spec: Any, *names: str) -> Iterable[Mistake]:
    """Yield the numbers of these fields that are negative."""
    for name in names:
        if not getattr(spec, name) >= 0:
            yield Mistake(where=name, found=format_setting(name, getattr(spec, name)), allowed="0 or more")


def at_most(spec: Any, name: str, limit: str) -> Iterable[Mistake]:
    """Yield a number that is above the one of another field."""
    if getattr(spec, name) > getattr(spec, limit):
        found, allowed = (format_setting(field, getattr(spec, field)) for field in (name, limit))
        yield Mistake(where=name, found=found, allowed=f"at most {allowed}, the data sheet's")
