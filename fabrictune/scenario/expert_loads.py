"""File of experts' loads: CSV with the columns `expert` and `load`, a row for each expert.

A load is any number in proportion to how often tokens take the expert: a count of tokens, or a share.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import MAX_SHOWN, read_foreign

MAX_FILE_BYTES = 4 * 2**20
COLUMNS = ["expert", "load"]
LEAST, MOST = 1e-9, 1e18


def read_loads(path: Path, num_experts: int) -> FloatArray:
    """Return the load of each expert, shape (experts,); raises InputError, with the line of a wrong row."""
    loads_X = np.zeros(num_experts)
    for line, row in _rows(path):
        expert, load = _row(f"{path}:{line}", row, num_experts)
        if loads_X[expert]:
            _refuse(f"{path}:{line}", f"expert {expert} again", "each expert once")
        loads_X[expert] = load
    missing = np.flatnonzero(loads_X == 0)
    if len(missing):
        _refuse(f"{path}", f"no load of expert {missing[0]}", f"a row for each of {num_experts} experts")
    return loads_X


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the names of the columns, with their lines."""
    columns = f"the columns {', '.join(COLUMNS)}"
    try:
        rows = csv.reader(io.StringIO(read_foreign(path, max_bytes=MAX_FILE_BYTES).decode(), newline=""))
        head = next(rows, None)
        if head is None or [name.strip() for name in head] != COLUMNS:
            _refuse(f"{path}:1", ",".join(head)[:MAX_SHOWN] if head else "an empty first line", columns)
        yield from ((rows.line_num, row) for row in rows if row)
    except (UnicodeDecodeError, csv.Error) as error:
        _refuse(f"{path}", f"no CSV text ({error})", columns)


def _row(where: str, row: list[str], num_experts: int) -> tuple[int, float]:
    allowed = f"an expert from 0 to {num_experts - 1} and a load from {LEAST:g} to {MOST:g}"
    try:
        expert, load = int(row[0]), float(row[1])
    except (ValueError, IndexError):
        _refuse(where, ",".join(row)[:MAX_SHOWN], allowed)
    if len(row) > len(COLUMNS) or not 0 <= expert < num_experts or not LEAST <= load <= MOST:
        _refuse(where, ",".join(row)[:MAX_SHOWN], allowed)
    return expert, load


def _refuse(where: str, found: str, allowed: str) -> NoReturn:
    raise InputError(Mistake(where=where, found=found, allowed=allowed))
