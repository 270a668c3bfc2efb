"""File of experts' loads: CSV with the columns `expert` and `load`, a row for each expert.

A load is any number in proportion to how often tokens take the expert: a count of tokens, or a share.
"""

import csv
import io
import math
from pathlib import Path
from typing import NoReturn

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import MAX_SHOWN, read_foreign

MAX_FILE_BYTES = 4 * 2**20
COLUMNS = ["expert", "load"]


def read_loads(path: Path, num_experts: int) -> FloatArray:
    """Return the load of each expert, shape (experts,); raises InputError, with the line of a wrong row."""
    try:
        rows = list(csv.reader(io.StringIO(read_foreign(path, max_bytes=MAX_FILE_BYTES).decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        _refuse(f"{path}", f"no CSV text ({error})", f"the columns {', '.join(COLUMNS)}")
    if not rows or [name.strip() for name in rows[0]] != COLUMNS:
        found = ",".join(rows[0])[:MAX_SHOWN] if rows else "an empty file"
        _refuse(f"{path}:1", found, f"the columns {', '.join(COLUMNS)}")
    loads_X = np.zeros(num_experts)
    for line, row in enumerate(rows[1:], start=2):
        if row:
            expert, load = _row(f"{path}:{line}", row, num_experts)
            if loads_X[expert]:
                _refuse(f"{path}:{line}", f"expert {expert} again", "each expert once")
            loads_X[expert] = load
    missing = np.flatnonzero(loads_X == 0)
    if len(missing):
        _refuse(f"{path}", f"no load of expert {missing[0]}", f"a row for each of {num_experts} experts")
    return loads_X


def _row(where: str, row: list[str], num_experts: int) -> tuple[int, float]:
    allowed = f"an expert from 0 to {num_experts - 1} and a load above 0"
    try:
        expert, load = int(row[0]), float(row[1])
    except (ValueError, IndexError):
        _refuse(where, ",".join(row)[:MAX_SHOWN], allowed)
    if len(row) > len(COLUMNS) or not 0 <= expert < num_experts or not 0 < load < math.inf:
        _refuse(where, ",".join(row)[:MAX_SHOWN], allowed)
    return expert, load


def _refuse(where: str, found: str, allowed: str) -> NoReturn:
    raise InputError(Mistake(where=where, found=found, allowed=allowed))
