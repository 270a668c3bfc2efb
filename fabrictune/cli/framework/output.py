"""Output of results: plain columns for terminals, pipes and diffs, or one JSON value.

Names in foreign files reach the terminal only as visible characters: a control sequence in a hostname is shown, never
obeyed.
"""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import click

from fabrictune.foundation.visible_text import printable

GAP = "  "  # between columns


def print_json(value: Any) -> None:
    """Print one JSON value; a number that is not finite becomes null."""
    click.echo(json.dumps(_finite(value), indent=2))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        click.echo(printable(line))


def print_paragraph(text: str) -> None:
    """Print a text that may be long: on a terminal between words over its lines, in a pipe or a file as one line."""
    shown = printable(text)
    if sys.stdout.isatty():
        shown = textwrap.fill(shown, shutil.get_terminal_size().columns, subsequent_indent=GAP)
    click.echo(shown)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int = 0) -> None:
    """Print rows in columns; a column of numbers is aligned to the right.

    On a terminal the widest columns of text are wrapped to its width; a row stays one line in a pipe or a file.
    """
    cells = [list(headings), *[list(map(printable, row)) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    numeric = [bool(rows) and all(row[column][:1].isdigit() for row in rows) for column in range(len(headings))]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - indent - len(GAP) * (len(widths) - 1)
        words = [
            max(len(word) for row in cells for word in (row[column].split() or [""])) for column in range(len(widths))
        ]
        least = [width if is_number else word for width, is_number, word in zip(widths, numeric, words, strict=True)]
        widths = _fitted(widths, least, room)
    for row in cells:
        wrapped = [
            [cell] if len(cell) <= width else textwrap.wrap(cell, width)
            for cell, width in zip(row, widths, strict=True)
        ]
        for lines in zip_longest(*wrapped, fillvalue=""):
            padded = [
                line.rjust(width) if is_number else line.ljust(width)
                for line, width, is_number in zip(lines, widths, numeric, strict=True)
            ]
            click.echo(" " * indent + GAP.join(padded).rstrip())


def _fitted(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that share `room`: the widest give way first, none below its longest word."""
    fitted = list(widths)
    while sum(fitted) > room:
        wide = [column for column, width in enumerate(fitted) if width > least[column]]
        if not wide:
            break
        fitted[max(wide, key=fitted.__getitem__)] -= 1
    return fitted


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value
