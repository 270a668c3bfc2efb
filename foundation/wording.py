"""Counts and lists of names as messages have them."""

from collections.abc import Iterable

SHOWN_NAMES = 4


def count(number: int, noun: str) -> str:
    """Return `1 host` or `2 hosts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def milliseconds(value: float) -> str:
    """Return milliseconds to three digits, and whole ones from a thousand on: `4.21`, `599,996`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def some(names: Iterable[str]) -> str:
    """Return the first names and how many more there are."""
    every = list(names)
    more = f" and {len(every) - SHOWN_NAMES:,} more" if len(every) > SHOWN_NAMES else ""
    return ", ".join(every[:SHOWN_NAMES]) + more
