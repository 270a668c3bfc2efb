"""The two trace tables: what ranks ask for (CommTrace) and what the wires carry (TrafficTrace).

A CommTrace is written by the trainer's ledger and by importers; collectives expands it on a placement into a
TrafficTrace, which both engines take. Both are tables of equal-length columns with dependencies in compressed sparse
rows (CSR): row i waits for `dependencies[offsets[i]:offsets[i + 1]]`. Files are Parquet; a column's name is the same
in memory and on disk.

Shapes: N rows, D dependencies in all.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from foundation.errors import Mistake, TraceError

UNKNOWN = -1  # a time that was not measured, a peer that does not exist
MAX_ROWS = 200_000_000  # a larger file is refused rather than read into memory

IntColumn = NDArray[np.int64]


class Operation(IntEnum):
    """What a rank asks of its group."""

    ALL_REDUCE = 0
    REDUCE_SCATTER = 1
    ALL_GATHER = 2
    BROADCAST = 3
    ALL_TO_ALL = 4
    SEND = 5
    RECEIVE = 6
    BARRIER = 7


class Medium(IntEnum):
    """What carries a transfer. `NONE` is a delay that moves no bytes."""

    FABRIC = 0
    NVLINK = 1
    NONE = 2


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """Rows that must finish before a row may start, in compressed sparse rows."""

    offset_N1: IntColumn  # N + 1 ascending offsets, from 0 to D
    row_D: IntColumn

    @classmethod
    def none(cls, num_rows: int) -> Self:
        """Return dependencies for rows that wait for nothing."""
        return cls(offset_N1=np.zeros(num_rows + 1, np.int64), row_D=np.zeros(0, np.int64))

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]]) -> Self:
        """Build from one list of rows per row."""
        sizes = np.fromiter((len(rows) for rows in lists), np.int64, len(lists))
        return cls(
            offset_N1=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            row_D=np.fromiter((row for rows in lists for row in rows), np.int64, int(sizes.sum())),
        )

    def of(self, row: int) -> IntColumn:
        """Return the rows that `row` waits for."""
        return self.row_D[self.offset_N1[row] : self.offset_N1[row + 1]]


@dataclass(frozen=True, kw_only=True)
class CommTrace:
    """N requests of ranks to communicate, in each rank's program order.

    The k-th request of a rank to a group meets the k-th of every other member: together they are one collective.
    """

    groups: tuple[tuple[int, ...], ...]  # ranks of each group, in ring order
    rank_N: IntColumn
    operation_N: IntColumn  # Operation
    group_N: IntColumn  # index into groups
    peer_N: IntColumn  # the other rank of a send or receive, the root of a broadcast, UNKNOWN elsewhere
    bytes_N: IntColumn  # nccl-tests' size: the full buffer of the operation on one rank
    compute_before_ps_N: IntColumn  # work between the last dependency and the request
    step_N: IntColumn
    axis_N: tuple[str, ...]  # tp, dp, pp, or another name the writer chose
    policy_N: tuple[str, ...]  # overlap policy in force
    tag_N: tuple[str, ...]  # the writer's name for the request
    dependencies: Dependencies
    issue_ps_N: IntColumn = field(default_factory=lambda: np.zeros(0, np.int64))  # measured; empty when planned
    complete_ps_N: IntColumn = field(default_factory=lambda: np.zeros(0, np.int64))
    exposed_wait_ps_N: IntColumn = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        _fill_unknown(self, ("issue_ps_N", "complete_ps_N", "exposed_wait_ps_N"), len(self.rank_N))
        _check_columns(self, "communication trace")
        _check(bool((self.bytes_N >= 0).all()), "communication trace", "a negative size")
        _check(_within(self.group_N, len(self.groups)), "communication trace", "a group that is not listed")
        _check(_within(self.operation_N, len(Operation)), "communication trace", "an unknown operation")
        _check_membership(self.groups, self.group_N, self.rank_N)

    def __len__(self) -> int:
        return len(self.rank_N)

    def write(self, path: Path) -> None:
        """Write as Parquet."""
        _write_table(self, path, {"groups": json.dumps(self.groups)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raises TraceError."""
        columns, metadata = _read_table(cls, path)
        try:
            groups = tuple(tuple(int(rank) for rank in group) for group in json.loads(metadata["groups"]))
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError(Mistake(where=str(path), found="no list of groups in the file's metadata")) from error
        return cls(groups=groups, **columns)


@dataclass(frozen=True, kw_only=True)
class TrafficTrace:
    """N transfers between endpoints.

    A transfer starts `delay_ps` after the later of `start_ps` and the finish of its last dependency. Transfers of one
    queue pair leave in the order in which they become ready, ties by row.
    """

    source_N: IntColumn  # endpoint: a NIC of the fabric for Medium.FABRIC, a GPU elsewhere
    destination_N: IntColumn
    medium_N: IntColumn  # Medium
    qp_N: IntColumn  # row of the network's queue-pair table; UNKNOWN unless Medium.FABRIC
    bytes_N: IntColumn
    start_ps_N: IntColumn
    delay_ps_N: IntColumn
    operation_N: IntColumn  # row of the CommTrace it came from; UNKNOWN for traffic made otherwise
    dependencies: Dependencies

    def __post_init__(self) -> None:
        _check_columns(self, "traffic trace")
        for name in ("bytes_N", "start_ps_N", "delay_ps_N"):
            _check(bool((getattr(self, name) >= 0).all()), "traffic trace", f"a negative value in {name}")
        _check(_within(self.medium_N, len(Medium)), "traffic trace", "an unknown medium")
        on_fabric = self.medium_N == Medium.FABRIC
        _check(bool((self.qp_N[on_fabric] >= 0).all()), "traffic trace", "a transfer on the fabric without queue pair")
        _check_acyclic(self.dependencies)

    def __len__(self) -> int:
        return len(self.source_N)

    def write(self, path: Path) -> None:
        """Write as Parquet."""
        _write_table(self, path, {})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raises TraceError."""
        columns, _ = _read_table(cls, path)
        return cls(**columns)


def _check(is_right: bool, where: str, found: str) -> None:
    if not is_right:
        raise TraceError(Mistake(where=where, found=found))


def _within(column: IntColumn, limit: int) -> bool:
    return bool(((column >= 0) & (column < limit)).all())


def _row_columns(table: Any) -> list[str]:
    return [column.name for column in fields(table) if column.name.endswith("_N")]


def _fill_unknown(table: Any, names: tuple[str, ...], num_rows: int) -> None:
    for name in names:
        if len(getattr(table, name)) == 0 and num_rows:
            object.__setattr__(table, name, np.full(num_rows, UNKNOWN, np.int64))


def _check_columns(table: Any, where: str) -> None:
    lengths = {name: len(getattr(table, name)) for name in _row_columns(table)}
    num_rows = next(iter(lengths.values()))
    _check(set(lengths.values()) == {num_rows}, where, f"columns of unequal length: {lengths}")
    dependencies: Dependencies = table.dependencies
    offsets = dependencies.offset_N1
    is_csr = len(offsets) == num_rows + 1 and offsets[0] == 0 and offsets[-1] == len(dependencies.row_D)
    _check(is_csr and bool((np.diff(offsets) >= 0).all()), where, "dependency offsets that do not fit the rows")
    _check(_within(dependencies.row_D, num_rows), where, "a dependency on a row that does not exist")


def _check_membership(groups: Sequence[Sequence[int]], group_N: IntColumn, rank_N: IntColumn) -> None:
    member = np.array([(group, rank) for group, ranks in enumerate(groups) for rank in ranks], np.int64).reshape(-1, 2)
    stride = 1 + max(member[:, 1].max(initial=0), rank_N.max(initial=0))
    is_member_N = np.isin(group_N * stride + rank_N, member[:, 0] * stride + member[:, 1])
    if not is_member_N.all():
        row = int(np.argmin(is_member_N))
        _check(False, "communication trace", f"row {row}: rank {rank_N[row]} is not in group {group_N[row]}")


def _check_acyclic(dependencies: Dependencies) -> None:
    """Kahn's algorithm over whole frontiers; raises TraceError naming one row of a circle."""
    num_rows = len(dependencies.offset_N1) - 1
    waiting_N = np.diff(dependencies.offset_N1)
    if not len(dependencies.row_D):
        return
    order_D = np.argsort(dependencies.row_D, kind="stable")
    dependent_D = np.repeat(np.arange(num_rows), waiting_N)[order_D]
    first_N1 = np.searchsorted(dependencies.row_D[order_D], np.arange(num_rows + 1))
    waiting_N = waiting_N.copy()
    frontier = np.nonzero(waiting_N == 0)[0]
    num_done = 0
    while len(frontier):
        num_done += len(frontier)
        lengths = first_N1[frontier + 1] - first_N1[frontier]
        starts = np.repeat(first_N1[frontier] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        released = dependent_D[starts + np.arange(lengths.sum())]
        np.subtract.at(waiting_N, released, 1)
        frontier = np.unique(released[waiting_N[released] == 0])
    if num_done < num_rows:
        row = int(np.nonzero(waiting_N > 0)[0][0])
        raise TraceError(
            Mistake(
                where="traffic trace",
                found=f"transfers that wait for one another in a circle; row {row} is in or behind it",
                next_step="remove one dependency of the circle",
            )
        )


def _write_table(table: Any, path: Path, metadata: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name.removesuffix("_N"): pa.array(getattr(table, name)) for name in _row_columns(table)}
    dependencies: Dependencies = table.dependencies
    columns["dependencies"] = pa.LargeListArray.from_arrays(dependencies.offset_N1, dependencies.row_D)
    pq.write_table(pa.table(columns).replace_schema_metadata({**metadata, "table": type(table).__name__}), path)


def _read_table(kind: Any, path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _check(file.metadata.num_rows <= MAX_ROWS, str(path), f"more than {MAX_ROWS} rows")
            table = file.read()
    except (OSError, pa.ArrowException) as error:
        raise TraceError(Mistake(where=str(path), found=f"not a readable Parquet file ({error})")) from error
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    written = metadata.get("table")
    _check(written == kind.__name__, str(path), f"a {written or 'foreign table'}, where a {kind.__name__} is needed")
    columns: dict[str, Any] = {}
    for name in _row_columns(kind):
        stem = name.removesuffix("_N")
        _check(stem in table.column_names, str(path), f"no column {stem!r}")
        column = table.column(stem).combine_chunks()
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        columns[name] = tuple(column.to_pylist()) if is_text else np.asarray(column, dtype=np.int64)
    lists = table.column("dependencies").combine_chunks()
    if lists.offset or len(lists) == 0:
        lists = pa.array(lists.to_pylist(), type=pa.large_list(pa.int64()))
    columns["dependencies"] = Dependencies(
        offset_N1=np.asarray(lists.offsets, dtype=np.int64), row_D=np.asarray(lists.values, dtype=np.int64)
    )
    return columns, metadata
