"""Measured collectives of any source: one row for each operation, size and place.

They are table `measurements` of a run record. Our own bench adds columns, of which skew_ns is read here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S

UNCHECKED = -1
TABLE = "measurements"
COLUMNS = ("operation", "is_in_place", "size_bytes", "num_ranks", "mean_ns", "num_wrong")
MAX_RANKS = 10_000_000
_FIELDS = ("name", *COLUMNS[1:], "skew_ns")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One operation at one size."""

    name: str  # in BENCHED
    is_in_place: bool
    size_bytes: int
    num_ranks: int
    mean_ns: float
    num_wrong: int = UNCHECKED
    skew_ns: float = 0.0  # mean wait of the first rank for the last; known of our own bench alone

    @property
    def algorithm_bandwidth_bps(self) -> float:
        """Return nccl-tests' algbw."""
        return self.size_bytes * BITS_PER_BYTE / (self.mean_ns / NS_PER_S)

    @property
    def bus_bandwidth_bps(self) -> float:
        """Return nccl-tests' busbw."""
        return self.algorithm_bandwidth_bps * bus_factor(BENCHED[self.name], self.num_ranks)


def to_table(rows: Iterable[Measurement]) -> Columns:
    """Return the table of a run record."""
    names = [name for name in TABLES[TABLE].required if name != "operation"]
    return to_columns(TABLE, [{"operation": row.name, **{name: getattr(row, name) for name in names}} for row in rows])


def from_record(record: RunRecord, *, where: str) -> tuple[Measurement, ...]:
    """Return the measurements of a record; raises RecordError for one that has none, or other values than it may."""
    table = record.tables.get(TABLE, {})
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        found = f"a record of {record.kind!r} without {', '.join(missing)} in a table {TABLE}"
        raise RecordError(Mistake(where=where, found=found, next_step="give a record of coll bench or coll import"))
    columns = [table[name].tolist() for name in COLUMNS]
    columns.append(table["skew_ns"].tolist() if "skew_ns" in table else [0.0] * len(columns[0]))
    return tuple(
        _checked(Measurement(**dict(zip(_FIELDS, row, strict=True))), where) for row in zip(*columns, strict=True)
    )


def _checked(row: Measurement, where: str) -> Measurement:
    numbers = (row.size_bytes, row.num_ranks, row.num_wrong)
    is_sound = (
        row.name in BENCHED
        and all(isinstance(number, int) for number in numbers)
        and isinstance(row.mean_ns, float)
        and 0 < row.mean_ns < np.inf
        and isinstance(row.skew_ns, float)
        and 0 <= row.skew_ns < np.inf
        and row.size_bytes > 0
        and 0 < row.num_ranks < MAX_RANKS
    )
    if not is_sound:
        raise RecordError(Mistake(where=f"{where}: table {TABLE}", found=f"{row}", allowed="an operation and its time"))
    return row
