"""File of measured steps: CSV with the column `step_s`, seconds, and a column for each recipe key that differs.

Lines that start with `#` are left out.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import MAX_SHOWN, read_foreign
from fabrictune.scenario.assignments import parse_setting

MAX_FILE_BYTES = 2**18
MAX_ROWS = 64  # each takes a dry run
TIME_COLUMN = "step_s"
_COLUMNS = f"the column {TIME_COLUMN}, and one for each recipe key that differs"


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """A measured step, and the recipe keys that it was measured with."""

    where: str
    step_s: float
    settings: Mapping[str, Any]


def read_measured_steps(path: Path) -> list[MeasuredRow]:
    """Return the rows of a file; raises InputError, with the line of a wrong row."""
    rows = list(_rows(path))
    if not 1 <= len(rows) <= MAX_ROWS:
        _refuse(str(path), f"{len(rows)} rows", f"1 to {MAX_ROWS} measured steps")
    return rows


def _rows(path: Path) -> Iterator[MeasuredRow]:
    head: list[str] = []
    for line, row in _lines(path):
        if not head:
            head = [name.strip() for name in row]
            if TIME_COLUMN not in head or len(set(head)) != len(head) or "" in head:
                _refuse(f"{path}:{line}", ",".join(row)[:MAX_SHOWN], _COLUMNS)
        else:
            yield _row(f"{path}:{line}", head, row)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        text = read_foreign(path, max_bytes=MAX_FILE_BYTES).decode()
        rows = csv.reader(io.StringIO(text, newline=""))
        yield from ((rows.line_num, row) for row in rows if row and not row[0].startswith("#"))
    except (UnicodeDecodeError, csv.Error) as error:
        _refuse(str(path), f"no CSV text ({error})", _COLUMNS)


def _row(where: str, head: list[str], row: list[str]) -> MeasuredRow:
    if len(row) != len(head):
        _refuse(where, f"{len(row)} values", f"{len(head)}, one for each column")
    values = dict(zip(head, (value.strip() for value in row), strict=True))
    text = values.pop(TIME_COLUMN)
    try:
        step_s = float(text)
    except ValueError:
        step_s = math.nan
    if not 0 < step_s < math.inf:
        _refuse(where, f"{TIME_COLUMN} {text[:MAX_SHOWN]!r}", "seconds above 0")
    settings = dict(parse_setting(f"{key}={value}") for key, value in values.items())
    return MeasuredRow(where=where, step_s=step_s, settings=settings)


def _refuse(where: str, found: str, allowed: str) -> NoReturn:
    raise InputError(Mistake(where=where, found=found, allowed=allowed))
