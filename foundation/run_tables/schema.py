"""Schema of a run record's table: columns with type, unit and meaning, and the check of what is written.

Three types are stored: whole numbers, numbers and text. A flag is a whole number, 0 or 1. A value that does not exist,
such as the end of a transfer that never ended, is -1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fabrictune.foundation.generated_tables import GeneratedTable

Type = Literal["int64", "float64", "string"]
Reference = Literal["port", "nic", "ipv4"]  # what a whole number stands for: a row of table `fabric`, or an address

FAMILY = "*"  # ends the name of a column that stands for several: `vary.*`
FLAG: Mapping[int, str] = {0: "no", 1: "yes"}

_KINDS: Mapping[Type, str] = {"int64": "iu", "float64": "iuf", "string": "OUT"}  # of NumPy arrays that are stored so
_UNIT_OF_SUFFIX = {"_ps": "ps", "_ns": "ns", "_bps": "bit/s", "bytes": "bytes", "packets": "packets"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    type: Type
    meaning: str
    unit: str = ""
    is_optional: bool = False
    refers_to: Reference | None = None
    refers_where: str = ""  # only in rows in which this column is not negative
    codes: Mapping[int, str] = field(default_factory=dict)  # names of whole numbers; FLAG for truth values


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """One table: a Parquet file of a run record."""

    name: str
    row: str  # what a row is
    kinds: tuple[str, ...]  # of the records that have it
    columns: tuple[Column, ...]
    key: str = ""  # column that has no value twice

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        assert len(set(names)) == len(names), f"table {self.name}: a column twice"

    def column(self, name: str) -> Column | None:
        """Return the column that a name belongs to, None where the table has none."""
        for column in self.columns:
            if name == column.name or (column.name.endswith(FAMILY) and name.startswith(column.name[: -len(FAMILY)])):
                return column
        return None

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that every writer writes."""
        return tuple(
            column.name for column in self.columns if not column.is_optional and not column.name.endswith(FAMILY)
        )

    def mistakes(self, columns: Mapping[str, Any]) -> Iterable[str]:
        """Yield what is wrong with columns that are about to be written."""
        if isinstance(columns, GeneratedTable):
            columns = columns.rows(0, min(columns.num_rows, 1))
        for name in self.required:
            if name not in columns:
                yield f"{self.name}.{name} is missing"
        yield from self.foreign(columns)

    def foreign(self, columns: Mapping[str, Any]) -> Iterable[str]:
        """Yield which columns the schema does not have, or has with another type."""
        for name, values in columns.items():
            column, array = self.column(name), np.asarray(values)
            if column is None:
                yield f"{self.name}.{name} is not in the schema"
            elif array.size and array.dtype.kind not in _KINDS[column.type]:
                yield f"{self.name}.{name} holds {array.dtype}, not {column.type}"


def integer_column(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of whole numbers; its unit is the name's suffix unless `unit` is given."""
    return _column(name, "int64", meaning, more)


def number_column(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of numbers; its unit is the name's suffix unless `unit` is given."""
    return _column(name, "float64", meaning, more)


def text_column(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of text."""
    return Column(name=name, type="string", meaning=meaning, **more)


def flag_column(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of 0 and 1."""
    return Column(name=name, type="int64", meaning=meaning, codes=FLAG, **more)


def interval_columns(name: str, meaning: str, **more: Any) -> tuple[Column, ...]:
    """Return an estimate's three columns: the figure, and the ends of its 95 % interval."""
    unit = more.pop("unit", _unit_of(name))
    return (
        number_column(name, meaning, unit=unit, **more),
        number_column(f"{name}_low", "lower end of its 95 % interval", unit=unit, **more),
        number_column(f"{name}_high", "upper end of its 95 % interval", unit=unit, **more),
    )


def _column(name: str, type_: Type, meaning: str, more: dict[str, Any]) -> Column:
    return Column(name=name, type=type_, meaning=meaning, unit=more.pop("unit", _unit_of(name)), **more)


def _unit_of(name: str) -> str:
    return next((unit for suffix, unit in _UNIT_OF_SUFFIX.items() if name.endswith(suffix)), "")
