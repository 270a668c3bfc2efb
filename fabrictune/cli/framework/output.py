"""Output of results: plain columns for terminals, pipes and diffs, or one JSON value.

Names in foreign files reach the terminal only as visible characters: a control sequence in a hostname is shown, never
obeyed.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import click

from fabrictune.foundation.visible_text import printable


def print_json(value: Any) -> None:
    """Print one JSON value; a number that is not finite becomes null."""
    click.echo(json.dumps(_finite(value), indent=2))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        click.echo(printable(line))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int = 0) -> None:
    """Print rows in columns; a column of numbers is aligned to the right."""
    cells = [list(headings), *[list(map(printable, row)) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    numeric = [bool(rows) and all(row[column][:1].isdigit() for row in rows) for column in range(len(headings))]
    for row in cells:
        padded = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numeric, strict=True)
        ]
        click.echo(" " * indent + "  ".join(padded).rstrip())


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value
