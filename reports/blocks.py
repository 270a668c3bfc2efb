"""Blocks of a page: sections of figures and tables, as data the template lays out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from fabrictune.foundation.units import format_duration, format_fraction

MISSING = "\u2013"  # shown in a table where a run has no such number
TIMES = "\u00d7"
MAX_LISTED = 4  # names in a row


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table; a cell with `sort` is a number and is right-aligned."""

    text: str | Markup
    sort: float | None = None
    tone: str = ""  # "good" or "bad", within bounds or out of them; "better" or "worse" than another


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    is_folded: bool = False  # shown on request
    left_out: str = ""  # what a bounded table does not show, and where it is
    is_sortable: bool = True  # by a click; not where a column holds values of several units
    hints: tuple[str, ...] = ()  # what each heading means, shown when the pointer rests on it


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing, what it shows, and the numbers behind it."""

    drawing: Markup
    caption: str
    table: Table | None = None
    is_folded: bool = False  # shown on request


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page under one heading."""

    anchor: str
    title: str
    lead: str  # one sentence: what to look for
    blocks: tuple[Figure | Table, ...]


def words(content: str | Markup, *, tone: str = "") -> Cell:
    """Return a cell of text."""
    return Cell(text=content, tone=tone)


def number(value: float, shown: str | Markup, *, tone: str = "") -> Cell:
    """Return a cell of a number: `shown` is its text, `value` what it sorts by; infinite sorts above all others."""
    return Cell(text=shown, sort=min(float(value), sys.float_info.max), tone=tone)


def missing() -> Cell:
    """Return the cell of a number there is not; it sorts below all others."""
    return number(-sys.float_info.max, MISSING)


def percent(fraction: float) -> str:
    """Return a share for people: "97 %", "0.4 %"."""
    return format_fraction(fraction)


def duration(duration_ps: float) -> str:
    """Return a duration for people, nothing as nothing."""
    return format_duration(duration_ps) if duration_ps else "0"


def plural(count: int, noun: str) -> str:
    """Return "1 link", "12,288 links"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shown_of(shown: int, total: int, noun: str) -> str:
    """Return what a bounded figure shows: "3 variants", "the first 64 of 100 variants"."""
    return plural(total, noun) if shown == total else f"the first {shown:,} of {plural(total, noun)}"


def merge_alike(tables: Iterable[tuple[str, Table]]) -> list[Table]:
    """Return tables, given with the labels that their captions begin with; alike ones once, under all their labels."""
    labels: dict[Table, list[str]] = {}
    for label, table in tables:
        assert table.caption.startswith(label), "the caption says whose table it is"
        labels.setdefault(replace(table, caption=table.caption.removeprefix(label)), []).append(label)
    return [replace(table, caption=f"{listed(names)}{table.caption}") for table, names in labels.items()]


def listed(names: Sequence[str]) -> str:
    """Return "a, b, c", of many names the first and how many more there are."""
    rest = len(names) - MAX_LISTED
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:MAX_LISTED])} and {rest} more"


def left_out(shown: int, total: int, noun: str, table: str) -> str:
    """Return a sentence on the rows a bounded table leaves out, and the record's table that has them; "" if none."""
    return f"{plural(total - shown, noun)} more in table “{table}” of the record." if total > shown else ""
