"""Blocks of a page: sections of figures and tables, as data the template lays out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from markupsafe import Markup

from fabrictune.foundation.units import format_duration, format_fraction
from fabrictune.foundation.visible_text import printable

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

    def captioned(self, caption: str) -> Self:
        """Return the table under another caption."""
        return replace(self, caption=caption)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing, what it shows, and the numbers behind it."""

    drawing: Markup
    caption: str
    table: Table | None = None
    is_folded: bool = False  # shown on request

    def captioned(self, caption: str) -> Self:
        """Return the figure under another caption, which is the text of its drawing, too."""
        earlier, later = (Markup('"{}"').format(printable(text)) for text in (self.caption, caption))
        return replace(self, caption=caption, drawing=self.drawing.replace(earlier, later))


Block = Figure | Table


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page under one heading."""

    anchor: str
    title: str
    lead: str  # one sentence: what to look for
    blocks: tuple[Block, ...]


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


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, "…" at its end where it is cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shown_of(shown: int, total: int, noun: str) -> str:
    """Return what a bounded figure shows: "3 variants", "the first 64 of 100 variants"."""
    return plural(total, noun) if shown == total else f"the first {shown:,} of {plural(total, noun)}"


def merge_alike(blocks: Iterable[Block], labels: Sequence[str]) -> tuple[Block, ...]:
    """Return blocks that are alike but for the label of their run once, under all their labels.

    A block says whose it is at the begin of its caption, "incast-2: busiest links"; one of several runs does not.
    """
    longest_first = sorted(labels, key=len, reverse=True)
    owners: dict[Block, list[str]] = {}
    for block in blocks:
        owner = next((label for label in longest_first if f"{block.caption}: ".startswith(f"{label}: ")), "")
        owners.setdefault(block.captioned(block.caption.removeprefix(owner)), []).append(owner)
    return tuple(block.captioned(f"{listed(names)}{block.caption}") for block, names in owners.items())


def listed(names: Sequence[str]) -> str:
    """Return "a, b, c", of many names the first and how many more there are."""
    rest = len(names) - MAX_LISTED
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:MAX_LISTED])} and {rest} more"


def left_out(shown: int, total: int, noun: str, table: str) -> str:
    """Return a sentence on the rows a bounded table leaves out, and the record's table that has them; "" if none."""
    return f"{plural(total - shown, noun)} more in table “{table}” of the record." if total > shown else ""
