"""The two trace tables: requests of ranks (CommTrace) and transfers on the wires (TrafficTrace).

A CommTrace is written by the trainer's ledger and by importers; collectives expands it on a placement into a
TrafficTrace, which both engines take. Both are tables of equal-length columns with dependencies in compressed sparse
rows (CSR): row i waits for `dependencies[offsets[i]:offsets[i + 1]]`. Files are Parquet; a column's name is the same
in memory and on disk.

Shapes: N rows, D dependencies in all.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.tables import (
    arrow_texts,
    columns_of,
    read_columns,
    read_metadata,
    table_from_bytes,
    table_to_bytes,
    write_table,
)
from fabrictune.foundation.texts import TextColumn, Texts

UNKNOWN = -1  # a time that was not measured, a peer that does not exist
MAX_RANK = 2**31 - 1
RELAYS = ("relayed_from_N", "relayed_to_N")  # files in which no transfer is relayed lack them
KIND = "table"  # of the metadata: what the rows of a file are


class Operation(IntEnum):
    """An operation that a rank requests of its group."""

    ALL_REDUCE = 0
    REDUCE_SCATTER = 1
    ALL_GATHER = 2
    BROADCAST = 3
    ALL_TO_ALL = 4
    SEND = 5
    RECEIVE = 6
    BARRIER = 7


class Medium(IntEnum):
    """The medium of a transfer. `NONE` is a delay that moves no bytes."""

    FABRIC = 0
    NVLINK = 1
    NONE = 2


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """Rows that must finish before a row may start, in compressed sparse rows."""

    offset_N1: IntArray  # N + 1 ascending offsets, from 0 to D
    row_D: IntArray

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

    def of(self, row: int) -> IntArray:
        """Return the rows that `row` waits for."""
        return self.row_D[self.offset_N1[row] : self.offset_N1[row + 1]]


@dataclass(frozen=True, kw_only=True)
class CommTrace:
    """N requests of ranks to communicate, in each rank's program order.

    The k-th request of a rank to a group meets the k-th of every other member: together they are one collective.
    """

    groups: tuple[tuple[int, ...], ...]  # ranks of each group, in ring order
    rank_N: IntArray
    operation_N: IntArray  # Operation
    group_N: IntArray  # index into groups
    peer_N: IntArray  # the other rank of a send or receive, the root of a broadcast, UNKNOWN elsewhere
    bytes_N: IntArray  # nccl-tests' size: the full buffer of the operation on one rank
    compute_before_ps_N: IntArray  # work between the last dependency and the request
    step_N: IntArray
    axis_N: TextColumn  # tp, dp, pp, or another name the writer chose
    policy_N: TextColumn  # overlap policy in force
    tag_N: TextColumn  # the writer's name for the request
    dependencies: Dependencies
    issue_ps_N: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # measured; empty when planned
    complete_ps_N: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    exposed_wait_ps_N: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    notes: tuple[str, ...] = ()  # what its reader left out, guessed or filled in

    def __post_init__(self) -> None:
        _fill_unknown(self, ("issue_ps_N", "complete_ps_N", "exposed_wait_ps_N"), len(self.rank_N))
        _check_columns(self, "communication trace")
        where = "communication trace"
        for name in ("bytes_N", "compute_before_ps_N"):
            _check(bool((getattr(self, name) >= 0).all()), where, f"a negative value in {name}")
        _check(_within(self.group_N, len(self.groups)), where, "a group that is not listed")
        _check(_within(self.operation_N, len(Operation)), where, "an unknown operation")
        _check_membership(self.groups, self.group_N, self.rank_N)
        _check_acyclic(self.dependencies, where)

    def __len__(self) -> int:
        return len(self.rank_N)

    def write(self, target: Path | BinaryIO, *, kind: str = "CommTrace", **metadata: str) -> None:
        """Write as Parquet; `kind` says what the rows are, where they are not all that ranks ask for.

        Raises InputError.
        """
        head = {**metadata, "groups": json.dumps(self.groups), **_noted(self.notes), KIND: kind}
        write_table(target, _arrow_columns(self), head)

    def to_bytes(self) -> bytes:
        """Return the trace as bytes for another process of the same run."""
        return table_to_bytes(_arrow_columns(self), {"groups": json.dumps(self.groups), KIND: "CommTrace"})

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the trace that `to_bytes` wrote; raises TraceError."""
        where = "communication trace of another process"
        table, metadata = table_from_bytes(content)
        return cls(
            groups=_groups(metadata, where), **_columns(cls, columns_of(table).items(), metadata, "CommTrace", where)
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raises TraceError."""
        return cls.read_as("CommTrace", path)[0]

    @classmethod
    def read_as(cls, kind: str, path: Path) -> tuple[Self, Mapping[str, str]]:
        """Read what `write` wrote as this kind, and its metadata; raises TraceError."""
        columns, metadata = _read(cls, path, kind)
        groups = _groups(metadata, str(path))
        with naming(path):
            return cls(groups=groups, notes=_notes(metadata, str(path)), **columns), metadata


@dataclass(frozen=True, kw_only=True)
class TracedJob:
    """The requests of a job among the transfers of a TrafficTrace, in memory only.

    Of its transfers, rows `begin` to `end` - 1, the first are its requests becoming ready, and `operation_N` counts
    the requests from that of row `begin` on.
    """

    requests: CommTrace
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True)
class TrafficTrace:
    """N transfers between endpoints.

    A transfer starts `delay_ps` after the later of `start_ps` and the finish of its last dependency. Transfers of one
    queue pair leave in the order in which they become ready, ties by row.
    """

    source_N: IntArray  # endpoint: a NIC of the fabric for Medium.FABRIC, a GPU elsewhere
    destination_N: IntArray
    medium_N: IntArray  # Medium
    qp_N: IntArray  # row of the network's queue-pair table; UNKNOWN unless Medium.FABRIC
    bytes_N: IntArray
    start_ps_N: IntArray
    delay_ps_N: IntArray
    operation_N: IntArray  # row of the CommTrace it came from; UNKNOWN for traffic made otherwise
    dependencies: Dependencies
    # GPU whose data cross NVLink to the GPU beside the NIC before they cross the fabric; UNKNOWN for data beside it.
    relayed_from_N: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    relayed_to_N: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    notes: tuple[str, ...] = ()  # what was left out, guessed or filled in on the way here
    jobs: tuple[TracedJob, ...] = ()  # whose requests the transfers come from; not in files

    def __post_init__(self) -> None:
        where = "traffic trace"
        _fill_unknown(self, RELAYS, len(self.source_N))
        _check_columns(self, where)
        for name in ("bytes_N", "start_ps_N", "delay_ps_N"):
            _check(bool((getattr(self, name) >= 0).all()), where, f"a negative value in {name}")
        _check(_within(self.medium_N, len(Medium)), where, "an unknown medium")
        on_fabric = self.medium_N == Medium.FABRIC
        _check(bool((self.qp_N[on_fabric] >= 0).all()), where, "a transfer on the fabric without queue pair")
        is_relayed = (self.relayed_from_N != UNKNOWN) | (self.relayed_to_N != UNKNOWN)
        has_both = (self.relayed_from_N >= 0) & (self.relayed_to_N >= 0) & on_fabric
        _check(not (is_relayed & ~has_both).any(), where, "a relay without both its GPUs, or off the fabric")
        _check_acyclic(self.dependencies, where)

    def __len__(self) -> int:
        return len(self.source_N)

    def with_notes(self, notes: Sequence[str]) -> "TrafficTrace":
        """Return the trace with these notes behind its own."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self

    def column(self, name: str, begin: int, end: int) -> IntArray:
        """Return rows `begin` to `end` - 1 of a column with a value a row, by its name here: `bytes_N`."""
        values_N: IntArray = getattr(self, name)[begin:end]
        return values_N

    def waits(self, begin: int, end: int) -> Dependencies:
        """Return what rows `begin` to `end` - 1 wait for: offsets from 0, rows of the whole trace."""
        offset_N1 = self.dependencies.offset_N1[begin : end + 1]
        return Dependencies(
            offset_N1=offset_N1 - offset_N1[0], row_D=self.dependencies.row_D[offset_N1[0] : offset_N1[-1]]
        )

    def written_out(self) -> "TrafficTrace":
        """Return the trace with all its rows in memory."""
        return self

    @property
    def arrives_over_time(self) -> bool:
        """Whether most transfers over the fabric that wait for none start at a time of their own, as arrivals do."""
        starts_ps = [np.zeros(0, np.int64)]
        for begin, end in ranges(0, len(self)):
            on_fabric_N = self.column("medium_N", begin, end) == Medium.FABRIC
            is_first_N = on_fabric_N & (np.diff(self.waits(begin, end).offset_N1) == 0)
            starts_ps.append(self.column("start_ps_N", begin, end)[is_first_N])
        start_ps = np.concatenate(starts_ps)
        return len(start_ps) > 1 and 2 * len(np.unique(start_ps)) > len(start_ps)

    def write(self, path: Path) -> None:
        """Write as Parquet."""
        columns = _arrow_columns(self)
        for name in RELAYS:
            if (getattr(self, name) == UNKNOWN).all():
                del columns[name.removesuffix("_N")]
        write_table(path, columns, {**_noted(self.notes), KIND: "TrafficTrace"})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raises TraceError."""
        columns, metadata = _read(cls, path, "TrafficTrace")
        with naming(path):
            return cls(notes=_notes(metadata, str(path)), **columns)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file in front of the mistakes that its content is found to have."""
    try:
        yield
    except TraceError as error:
        raise TraceError(*(replace(mistake, where=f"{path}: {mistake.where}") for mistake in error.mistakes)) from None


def _check(is_right: bool, where: str, found: str) -> None:
    if not is_right:
        raise TraceError(Mistake(where=where, found=found))


def _within(column: IntArray, limit: int) -> bool:
    return bool(((column >= 0) & (column < limit)).all())


def _row_columns(table: Any) -> dict[str, bool]:
    """Return the names of the columns with one value a row, and whether each holds text."""
    return {column.name: column.type is not IntArray for column in fields(table) if column.name.endswith("_N")}


def _fill_unknown(table: Any, names: tuple[str, ...], num_rows: int) -> None:
    for name in names:
        if len(getattr(table, name)) == 0 and num_rows:
            object.__setattr__(table, name, np.broadcast_to(np.int64(UNKNOWN), num_rows))


def concatenate_traces(traces: Sequence[CommTrace]) -> CommTrace:
    """Return the rows of several traces one after another, with the groups of all; equal groups are one."""
    number_of = {
        group: number for number, group in enumerate(dict.fromkeys(g for trace in traces for g in trace.groups))
    }
    columns: dict[str, Any] = {}
    for name, is_text in _row_columns(CommTrace).items():
        values = [getattr(trace, name) for trace in traces]
        columns[name] = tuple(text for rows in values for text in rows) if is_text else np.concatenate(values)
    columns["group_N"] = np.concatenate(
        [np.array([number_of[group] for group in trace.groups], np.int64)[trace.group_N] for trace in traces]
    )
    first_row = np.cumsum([0, *(len(trace) for trace in traces)])
    num_waits = np.concatenate([np.diff(trace.dependencies.offset_N1) for trace in traces])
    dependencies = Dependencies(
        offset_N1=np.concatenate([[0], np.cumsum(num_waits)]),
        row_D=np.concatenate(
            [trace.dependencies.row_D + first for trace, first in zip(traces, first_row, strict=False)]
        ),
    )
    notes = tuple(dict.fromkeys(note for trace in traces for note in trace.notes))
    return CommTrace(groups=tuple(number_of), dependencies=dependencies, notes=notes, **columns)


def _check_columns(table: Any, where: str) -> None:
    lengths = {name: len(getattr(table, name)) for name in _row_columns(table)}
    num_rows = next(iter(lengths.values()))
    _check(set(lengths.values()) == {num_rows}, where, f"columns of unequal length: {lengths}")
    dependencies: Dependencies = table.dependencies
    offsets = dependencies.offset_N1
    is_csr = len(offsets) == num_rows + 1 and offsets[0] == 0 and offsets[-1] == len(dependencies.row_D)
    _check(is_csr and bool((np.diff(offsets) >= 0).all()), where, "dependency offsets that do not fit the rows")
    _check(_within(dependencies.row_D, num_rows), where, "a dependency on a row that does not exist")


def _check_membership(groups: Sequence[Sequence[int]], group_N: IntArray, rank_N: IntArray) -> None:
    where = "communication trace"
    _check(all(0 <= rank <= MAX_RANK for ranks in groups for rank in ranks), where, "a rank outside 0 to 2**31 - 1")
    _check(_within(rank_N, MAX_RANK + 1), where, "a rank outside 0 to 2**31 - 1")
    sizes = [len(ranks) for ranks in groups]
    member_rank = np.fromiter((rank for ranks in groups for rank in ranks), np.int64, sum(sizes))
    member_group = np.repeat(np.arange(len(groups)), sizes)
    is_member_N = np.isin(group_N * 2**31 + rank_N, member_group * 2**31 + member_rank)
    if not is_member_N.all():
        row = int(np.argmin(is_member_N))
        _check(False, where, f"row {row}: rank {rank_N[row]} is not in group {group_N[row]}")


def is_acyclic(dependencies: Dependencies) -> bool:
    """Return whether no rows wait for one another in a circle."""
    return _row_in_circle(dependencies) is None


def _check_acyclic(dependencies: Dependencies, where: str) -> None:
    row = _row_in_circle(dependencies)
    if row is not None:
        raise TraceError(
            Mistake(
                where=where,
                found=f"rows that wait for one another in a circle; row {row} is in or behind it",
                next_step="remove one dependency of the circle",
            )
        )


def _row_in_circle(dependencies: Dependencies) -> int | None:
    """Return one row in or behind a circle, None where there is none: Kahn's algorithm over whole frontiers."""
    num_rows = len(dependencies.offset_N1) - 1
    waiting_N = np.diff(dependencies.offset_N1)
    dependent_D = np.repeat(np.arange(num_rows), waiting_N)
    if (dependencies.row_D < dependent_D).all():  # every row waits for earlier ones only, as most writers have it
        return None
    order_D = np.argsort(dependencies.row_D, kind="stable")
    dependent_D = dependent_D[order_D]
    first_N1 = np.searchsorted(dependencies.row_D[order_D], np.arange(num_rows + 1))
    frontier = np.nonzero(waiting_N == 0)[0]
    num_done = 0
    while len(frontier):
        num_done += len(frontier)
        lengths = first_N1[frontier + 1] - first_N1[frontier]
        starts = np.repeat(first_N1[frontier] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        released = dependent_D[starts + np.arange(lengths.sum())]
        np.subtract.at(waiting_N, released, 1)
        frontier = np.unique(released[waiting_N[released] == 0])
    return int(np.nonzero(waiting_N > 0)[0][0]) if num_done < num_rows else None


def _arrow_columns(table: Any) -> dict[str, Any]:
    """Return the columns of a trace as Arrow arrays, by their names on disk."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, is_text in _row_columns(table).items():
        values = getattr(table, name)
        columns[name.removesuffix("_N")] = arrow_texts(values) if is_text else pa.array(values, pa.int64())
    dependencies: Dependencies = table.dependencies
    columns["dependencies"] = pa.LargeListArray.from_arrays(dependencies.offset_N1, dependencies.row_D)
    return columns


def _read(trace: Any, path: Path, kind: str) -> tuple[dict[str, Any], Mapping[str, str]]:
    metadata = read_metadata(path, error=TraceError)
    return _columns(trace, read_columns(path, error=TraceError), metadata, kind, str(path)), metadata


def _noted(notes: Sequence[str]) -> dict[str, str]:
    """Return the metadata of a file's notes, nothing where there are none."""
    return {"notes": json.dumps(notes)} if notes else {}


def _notes(metadata: Mapping[str, str], where: str) -> tuple[str, ...]:
    try:
        return tuple(str(note) for note in json.loads(metadata.get("notes", "[]")))
    except (TypeError, ValueError, RecursionError) as error:
        raise TraceError(Mistake(where=where, found="notes in the file's metadata that cannot be read")) from error


def _groups(metadata: Mapping[str, str], where: str) -> tuple[tuple[int, ...], ...]:
    try:
        return tuple(tuple(int(rank) for rank in group) for group in json.loads(metadata["groups"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise TraceError(Mistake(where=where, found="no list of groups in the file's metadata")) from error


def _columns(
    trace: Any, arrays: Iterable[tuple[str, Any]], metadata: Mapping[str, str], kind: str, where: str
) -> dict[str, Any]:
    """Return the fields of a trace, taken out of the Arrow columns of a table of its kind; raises TraceError."""
    written = metadata.get(KIND)
    _check(written == kind, where, f"a {written or 'foreign table'}, where a {kind} is needed")
    is_text = {name.removesuffix("_N"): is_text for name, is_text in _row_columns(trace).items()}
    columns: dict[str, Any] = {}
    for name, column in arrays:
        if name == "dependencies":
            columns[name] = _dependencies(column, where)
        elif name in is_text:
            columns[f"{name}_N"] = _texts(column, name, where) if is_text[name] else _numbers(column, name, where)
    for name in (*is_text, "dependencies"):
        is_there = name in columns or f"{name}_N" in columns
        _check(is_there or f"{name}_N" in RELAYS, where, f"no column {name!r}")
    return columns


def _texts(column: Any, name: str, where: str) -> Texts:
    import pyarrow as pa

    kind = _kind(column)
    _check_column(column, kind == pa.string(), f"{name!r} holds {kind}, not text", where)
    return Texts.of_arrow(column)


def _numbers(column: Any, name: str, where: str) -> IntArray:
    import pyarrow as pa

    _check_column(column, column.type == pa.int64(), f"{name!r} holds {_kind(column)}, not whole numbers", where)
    return _shared(np.asarray(column.combine_chunks(), dtype=np.int64))


def _shared(values: IntArray) -> IntArray:
    """Return equal numbers as one: times that nobody measured, peers that collectives do not have."""
    is_constant = len(values) > 1 and values[0] == values[-1] and bool((values == values[0]).all())
    return np.broadcast_to(np.int64(values[0]), len(values)) if is_constant else values


def _dependencies(column: Any, where: str) -> Dependencies:
    import pyarrow as pa

    is_right = column.type == pa.large_list(pa.int64())
    _check_column(column, is_right, f"'dependencies' holds {_kind(column)}, not lists of rows", where)
    lists = column.combine_chunks()
    _check(lists.values.null_count == 0, where, "column 'dependencies' has empty cells")
    return Dependencies(
        offset_N1=np.asarray(lists.offsets, dtype=np.int64), row_D=np.asarray(lists.values, dtype=np.int64)
    )


def _kind(column: Any) -> Any:
    """Return the Arrow type of a column's values, whether or not they are in dictionaries."""
    return column.type.value_type if hasattr(column.type, "index_type") else column.type


def _check_column(column: Any, is_right: bool, found: str, where: str) -> None:
    _check(is_right, where, f"column {found}")
    _check(column.null_count == 0, where, f"column {found.split()[0]} has empty cells")
