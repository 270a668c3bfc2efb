"""GeneratedTable: a table of a record whose columns are made when they are read; and some rows of a table.

A run of millions of transfers has tables larger than what they are made from. Such a table is written range by range,
and a metric makes the columns that it needs.

Shapes: N rows, R of them selected.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, Columns
from fabrictune.foundation.row_ranges import ranges

MakeColumn = Callable[[int, int], NDArray[Any]]  # of rows `begin` to `end` - 1


class GeneratedTable(Mapping[str, NDArray[Any]]):
    """Columns by name, each made anew whenever it is asked for."""

    def __init__(self, num_rows: int, columns: Mapping[str, MakeColumn]) -> None:
        self.num_rows = num_rows
        self._columns = dict(columns)
        self._kept: dict[str, BoolArray] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns, as of any table here."""
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.column(name, 0, self.num_rows)

    def column(self, name: str, begin: int, end: int) -> NDArray[Any]:
        """Return rows `begin` to `end` - 1 of a column."""
        make = self._columns[name]
        column = np.empty(end - begin, make(begin, begin).dtype)
        for first, last in ranges(begin, end):
            column[first - begin : last - begin] = make(first, last)
        return column

    def keep(self, name: str, make: Callable[[], BoolArray]) -> BoolArray:
        """Return what is asked for again and again, made once: a truth value a row."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def rows(self, begin: int, end: int) -> dict[str, NDArray[Any]]:
        """Return rows `begin` to `end` - 1."""
        return {name: self.column(name, begin, end) for name in self}


class SelectedRows(Mapping[str, NDArray[Any]]):
    """Rows of a table in which something is so; each column is selected whenever it is asked for, not to be changed."""

    def __init__(self, table: Columns, is_selected_N: BoolArray) -> None:
        self._table = table
        self._is_selected_N = is_selected_N
        self._are_all = bool(is_selected_N.all())

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    def __getitem__(self, name: str) -> NDArray[Any]:
        if not isinstance(self._table, GeneratedTable):
            return self._table[name] if self._are_all else self._table[name][self._is_selected_N]
        column_R = np.empty(np.count_nonzero(self._is_selected_N), self._table.column(name, 0, 0).dtype)
        filled = 0
        for begin, end in ranges(0, self._table.num_rows):
            rows = self._table.column(name, begin, end)[self._is_selected_N[begin:end]]
            column_R[filled : filled + len(rows)] = rows
            filled += len(rows)
        return column_R
