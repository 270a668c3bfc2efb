"""Blocks of a page: sections of figures and tables, as data the template lays out."""

import sys
from dataclasses import dataclass

from markupsafe import Markup

from fabrictune.foundation.units import format_duration, format_fraction

MISSING = "\u2013"  # shown in a table where a run has no such number
TIMES = "\u00d7"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table; a cell with `sort` is a number and is right-aligned."""

    text: str | Markup
    sort: float | None = None
    tone: str = ""  # "good" or "bad"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    is_folded: bool = False  # shown on request
    left_out: str = ""  # what a bounded table does not show, and where it is
    hints: tuple[str, ...] = ()  # what each heading means, shown when the pointer rests on it


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing, what it shows, and the numbers behind it."""

    drawing: Markup
    caption: str
    table: Table | None = None


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
    """Return the cell of a number there is not; it sorts below all others, of which none is negative."""
    return number(-1, MISSING)


def percent(fraction: float) -> str:
    """Return a share for people: "97 %", "0.4 %"."""
    return format_fraction(fraction)


def duration(duration_ps: float) -> str:
    """Return a duration for people, nothing as nothing."""
    return format_duration(duration_ps) if duration_ps else "0"


def plain(value: float) -> str:
    """Return a number without a unit for people, never in powers of ten from a thousand on: "67,780", "0.0012"."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    """Return "1 link", "12,288 links"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def left_out(shown: int, total: int, noun: str, table: str) -> str:
    """Return a sentence on the rows a bounded table leaves out, and the record's table that has them; "" if none."""
    return f"{plural(total - shown, noun)} more in table “{table}” of the record." if total > shown else ""
