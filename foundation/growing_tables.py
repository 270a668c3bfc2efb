"""Growing tables: rows of a record whose run goes on, a JSON object a line, each handed to the system at once.

A process that is killed loses no row that was appended; of one that it was writing, the line without an end is left out
by readers. A loss of power may take more: nothing is synced.
"""

import errno
import json
import math
import os
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import Columns
from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.foreign_files import open_foreign, shown
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.run_tables.schema import TableSchema

SUFFIX = ".jsonl"
MAX_BYTES = 2**30
MAX_LINE_BYTES = 2**16
_CODES = {"int64": "q", "float64": "d"}  # of array.array: 8 bytes a value


def append_row(file: BinaryIO, row: Mapping[str, Any]) -> None:
    """Append a row by one write to an unbuffered file; its numbers are finite. Raises OSError."""
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    if file.write(line) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_growing(path: Path, schema: TableSchema) -> Columns:
    """Return the rows as columns of a table; raises RecordError for what is no row, or another one than the first."""
    columns: dict[str, array[Any]] = {}
    with open_foreign(path, max_bytes=MAX_BYTES, error=RecordError) as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
            if len(line) < MAX_LINE_BYTES and not line.endswith(b"\n"):
                break  # its writer was killed
            try:
                _append(columns, json.loads(line), schema)
            except (TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
                found = f"not a row of {schema.name} ({error}): {shown(line)}"
                raise RecordError(Mistake(where=f"{path}:{number}", found=found)) from error
    if not columns:
        return to_columns(schema.name, [])
    return {name: _as_array(values) for name, values in columns.items()}


def _append(columns: "dict[str, array[Any]]", row: Any, schema: TableSchema) -> None:
    if not isinstance(row, dict):
        raise TypeError("no JSON object")
    if not columns:
        columns.update({name: array(_code(name, schema)) for name in row})
    if row.keys() != columns.keys():
        raise KeyError("other columns than the first row")
    for name, value in row.items():
        if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
            raise TypeError(f"{name} is no number")
        columns[name].append(value)


def _code(name: str, schema: TableSchema) -> str:
    column = schema.column(name)
    return _CODES["float64" if column is None else column.type]


def _as_array(values: "array[Any]") -> NDArray[Any]:
    return np.array(values, np.int64 if values.typecode == "q" else np.float64)
