"""The columns of one table that a part of the page reads, and their check against the schema.

A table that is there but malformed is refused with its name and column: a figure drawn from half a table would look
just as convincing as a true one. A table may have more columns than the page reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.records import Columns
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.schema import Column, Type

_WORDS: Mapping[Type, tuple[str, str]] = {  # of a column, of its values
    "int64": ("whole", "whole numbers"),
    "float64": ("number", "finite numbers"),
    "string": ("text", "text"),
}


@dataclass(frozen=True)
class Selection:
    """Columns of one table of the schema; assert that it has them."""

    table: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        assert all(TABLES[self.table].column(name) for name in self.columns), f"columns outside table {self.table}"

    def schema(self) -> dict[str, Column]:
        """Return the selected columns by their names."""
        by_name = {name: TABLES[self.table].column(name) for name in self.columns}
        return {name: column for name, column in by_name.items() if column is not None}


def select(table: str, *columns: str) -> Selection:
    """Return a selection."""
    return Selection(table, columns)


class Sized(Protocol):
    """A fabric, as far as its numbers are checked against it."""

    @property
    def num_ports(self) -> int: ...

    @property
    def num_nics(self) -> int: ...


def read_selection(table: Columns, selection: Selection, fabric: Sized | None) -> Columns:
    """Return the selected columns of a record's table, typed and of one length; raises RecordError.

    An optional column that the table lacks is left out.

    With a fabric, ports and NICs are checked against it, and a table with a row a port has one for every port, in port
    order and 0 where the record has none.
    """
    _check_presence(table, selection)
    name = selection.table
    columns = {
        key: _typed(f"{name}.{key}", table[key], column)
        for key, column in selection.schema().items()
        if key in table  # an optional column may be missing
    }
    _check_lengths(name, columns)
    if fabric is None:
        return columns
    _check_references(selection, columns, fabric)
    return _one_row_a_port(name, columns, fabric.num_ports) if TABLES[name].key == "port" else columns


def _check_presence(table: Columns, selection: Selection) -> None:
    name = selection.table
    mistakes = [
        Mistake(
            where=f"{name}.{key}",
            found="the column is missing",
            allowed=f"a {_WORDS[column.type][0]} column in table {name!r}",
        )
        for key, column in selection.schema().items()
        if key not in table and not column.is_optional
    ]
    if mistakes:
        raise RecordError(*mistakes)


def _typed(where: str, column_values: Any, column: Column) -> NDArray[Any]:
    values = np.asarray(column_values)
    if not values.size:
        return values
    match column.type:
        case "string" if values.dtype.kind in "OUT" and all(isinstance(value, str) for value in values):
            return values
        case "int64" if values.dtype.kind in "iub":
            return values.astype(np.int64, copy=False)
        case "float64" if values.dtype.kind in "iuf" and np.isfinite(values).all():
            return values.astype(np.float64, copy=False)
    found = f"values of type {values.dtype}, or missing ones"
    raise RecordError(Mistake(where=where, found=found, allowed=_WORDS[column.type][1]))


def _check_lengths(name: str, columns: Columns) -> None:
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest = min(lengths, key=lengths.__getitem__)
        found = f"{lengths[shortest]} rows where another column has {max(lengths.values())}"
        raise RecordError(Mistake(where=f"{name}.{shortest}", found=found))


def _check_references(selection: Selection, columns: Columns, fabric: Sized) -> None:
    limits = {"port": (fabric.num_ports, "port", "ports"), "nic": (fabric.num_nics, "NIC", "NICs")}
    for key, column in selection.schema().items():
        if column.refers_to not in limits:
            continue
        limit, one, many = limits[column.refers_to]
        is_wrong = (columns[key] < 0) | (columns[key] >= limit)
        if column.refers_where:
            is_wrong &= columns[column.refers_where] >= 0
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise RecordError(
                Mistake(
                    where=f"{selection.table}.{key}",
                    found=f"{one} {columns[key][row]} in row {row}",
                    allowed=f"0 to {limit - 1}, the {many} of table 'fabric'",
                )
            )


def _one_row_a_port(name: str, columns: Columns, num_ports: int) -> Columns:
    if (np.bincount(columns["port"], minlength=num_ports) > 1).any():
        raise RecordError(Mistake(where=f"{name}.port", found="a port in two rows", allowed="one row for each port"))
    spread: dict[str, NDArray[Any]] = {"port": np.arange(num_ports)}
    for key, column in columns.items():
        if key != "port":
            spread[key] = np.zeros(num_ports, column.dtype)
            spread[key][columns["port"]] = column
    return spread
