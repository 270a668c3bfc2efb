"""Rows of a CSV file with a first line of names, each with its place and its cells by name.

A row with more or fewer cells than the first line has names is a mistake and is left out. Names count without capitals
and spaces around them; so do cells without spaces.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake

MAX_MISTAKES = 20  # of a file that are collected


@dataclass(frozen=True, kw_only=True)
class CsvRow:
    """A row of a file."""

    path: Path
    line: int
    cells: Mapping[str, str]

    @property
    def where(self) -> str:
        """The place that a Mistake names."""
        return f"{self.path}:{self.line}"


def read_csv_rows(path: Path, *, required: Sequence[str], max_bytes: int, mistakes: list[Mistake]) -> Iterator[CsvRow]:
    """Yield the rows until `mistakes`, to which those of rows are added, are MAX_MISTAKES.

    Raises InputError for a file that is no CSV, or that lacks a column.
    """
    reader = csv.reader(io.StringIO(read_text(path, max_bytes=max_bytes), newline=""))
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        if missing := [name for name in required if name not in names]:
            found, allowed = f"no column {', '.join(missing)}", f"a first line with {', '.join(required)}"
            raise InputError(Mistake(where=f"{path}:1", found=found, allowed=allowed))
        for cells in filter(None, reader):
            if len(mistakes) >= MAX_MISTAKES:
                return
            if len(cells) == len(names):
                row = dict(zip(names, map(str.strip, cells), strict=True))
                yield CsvRow(path=path, line=reader.line_num, cells=row)
            else:
                where, allowed = f"{path}:{reader.line_num}", f"{len(names)}, as in the first line"
                mistakes.append(Mistake(where=where, found=f"{len(cells)} columns", allowed=allowed))
    except csv.Error as error:
        where = f"{path}:{reader.line_num}"
        raise InputError(Mistake(where=where, found=f"not CSV ({error})", allowed="a row a line")) from None
