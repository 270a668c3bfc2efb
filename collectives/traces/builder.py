"""A CommTrace put together request by request, or for many ranks that ask for the same.

A row costs eight bytes a column while it is built, whatever object it came from.

Shapes: N rows.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceRow:
    """One row of a CommTrace; columns as there."""

    rank: int
    operation: Operation
    group: tuple[int, ...]  # ranks in ring order
    num_bytes: int
    peer: int = UNKNOWN
    compute_before_ps: int = 0
    waits: tuple[int, ...] = ()  # rows of the trace
    axis: str = ""
    tag: str = ""
    issue_ps: int = UNKNOWN
    complete_ps: int = UNKNOWN


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request of each of many ranks, every rank in its own group."""

    operation: Operation
    kind: int  # which of a rank's groups
    num_bytes: int
    place: int = UNKNOWN  # of the peer in the group
    compute_before_ps: int = 0
    wait: int = UNKNOWN  # row of the same rank
    axis: str = ""
    tag: str = ""


class Program:
    """Requests that many ranks make, as columns: they are read once, whatever the number of ranks."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.operation_N = np.array([int(request.operation) for request in requests], np.int64)
        self.kind_N = np.array([request.kind for request in requests], np.int64)
        self.bytes_N = np.array([request.num_bytes for request in requests], np.int64)
        self.place_N = np.array([request.place for request in requests], np.int64)
        self.compute_before_ps_N = np.array([request.compute_before_ps for request in requests], np.int64)
        self.wait_N = np.array([request.wait for request in requests], np.int64)
        self.axes = [request.axis for request in requests]
        self.tags = [request.tag for request in requests]

    def __len__(self) -> int:
        return len(self.axes)


def build_trace(requests: Iterable[TraceRow], notes: Sequence[str] = ()) -> CommTrace:
    """Return the trace of requests, by rank and then as given; groups are numbered as they first come.

    `notes` say what was left out, guessed or filled in. Raises TraceError.
    """
    builder = TraceBuilder()
    for request in requests:
        builder.add(request)
    return builder.finish(notes)


_NUMBERS = ("rank", "operation", "group", "peer", "bytes", "compute_before_ps", "issue_ps", "complete_ps")


class TraceBuilder:
    """The columns of a trace, as far as it is built."""

    def __init__(self) -> None:
        self._numbers = {name: array("q") for name in _NUMBERS}
        self._axes: list[str] = []
        self._tags: list[str] = []
        self._offset = array("q", [0])
        self._wait = array("q")
        self._number_of: dict[tuple[tuple[int, ...], int], int] = {}  # of a group and its label
        self._known: dict[
            tuple[int, int], tuple[tuple[int, ...], int]
        ] = {}  # by identity: group, kept alive, and number

    def __len__(self) -> int:
        return len(self._axes)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups so far, by number."""
        return tuple(group for group, _ in self._number_of)

    def add(self, row: TraceRow) -> None:
        """Add a row."""
        values = (
            row.rank,
            int(row.operation),
            self._group_number(row.group),
            row.peer,
            row.num_bytes,
            row.compute_before_ps,
            row.issue_ps,
            row.complete_ps,
        )
        for column, value in zip(self._numbers.values(), values, strict=True):
            column.append(value)
        self._axes.append(row.axis)
        self._tags.append(row.tag)
        self._wait.extend(row.waits)
        self._offset.append(len(self._wait))

    def run(self, program: Program, rank: int, groups: Sequence[tuple[int, ...]]) -> None:
        """Add a rank's requests; `groups` are its own by kind, in the order in which the requests first name them."""
        peer_N = np.full(len(program), UNKNOWN, np.int64)
        for kind in np.unique(program.kind_N[program.place_N != UNKNOWN]).tolist():
            is_one_N = (program.kind_N == kind) & (program.place_N != UNKNOWN)
            peer_N[is_one_N] = np.array(groups[kind], np.int64)[program.place_N[is_one_N]]
        unknown_N = np.full(len(program), UNKNOWN, np.int64)
        columns = {
            "rank": np.full(len(program), rank, np.int64),
            "operation": program.operation_N,
            "group": np.array([self._group_number(group) for group in groups], np.int64)[program.kind_N],
            "peer": peer_N,
            "bytes": program.bytes_N,
            "compute_before_ps": program.compute_before_ps_N,
            "issue_ps": unknown_N,
            "complete_ps": unknown_N,
        }
        first, num_waits, has_wait_N = len(self), len(self._wait), program.wait_N != UNKNOWN
        for name, column in columns.items():
            self._numbers[name].frombytes(column.tobytes())
        self._axes += program.axes
        self._tags += program.tags
        self._wait.frombytes((program.wait_N[has_wait_N] + first).tobytes())
        self._offset.frombytes((num_waits + np.cumsum(has_wait_N, dtype=np.int64)).tobytes())

    def add_rank(
        self,
        rank: int,
        columns: Mapping[str, IntArray],
        *,
        groups: Sequence[tuple[int, ...]],
        group_R: IntArray,
        tags: Sequence[str],
        waits: Dependencies,
        labels: Sequence[int] | None = None,
    ) -> None:
        """Add a rank's requests by their columns; `waits` are rows of the trace, `group_R` the group of each request.

        Columns are operation, peer, bytes and the work before. Groups of the same ranks with other labels are apart.
        """
        labels = labels or (0,) * len(groups)
        used, first, place_R = np.unique(group_R, return_index=True, return_inverse=True)
        number_of_used = np.zeros(len(used), np.int64)
        for place in np.argsort(first).tolist():  # in the order in which the requests first name them
            number_of_used[place] = self._group_number(groups[used[place]], labels[used[place]])
        unknown_R = np.full(len(group_R), UNKNOWN, np.int64)
        rest = {"rank": np.full(len(group_R), rank, np.int64), "group": number_of_used[place_R.ravel()]}
        for name, column in {**columns, **rest, "issue_ps": unknown_R, "complete_ps": unknown_R}.items():
            self._numbers[name].frombytes(column.astype(np.int64).tobytes())
        self._axes += [""] * len(group_R)
        self._tags += tags
        self._offset.frombytes((len(self._wait) + waits.offset_N1[1:]).tobytes())
        self._wait.frombytes(waits.row_D.tobytes())

    def repeat(self, num_rows: int, ranks: Sequence[int]) -> None:
        """Add the last `num_rows` rows once more for each of `ranks`; their waits are for one another."""
        first, num_times = len(self) - num_rows, len(ranks)
        first_wait = self._offset[first]
        num_waits = len(self._wait) - first_wait
        for name, column in self._numbers.items():
            column.extend(_repeated(ranks, num_rows) if name == "rank" else column[first:] * num_times)
        self._axes += self._axes[first:] * num_times
        self._tags += self._tags[first:] * num_times
        self._wait.extend(_shifted(self._wait[first_wait:], num_times, num_rows))
        self._offset.extend(_shifted(self._offset[first + 1 :], num_times, num_waits))

    def finish(self, notes: Sequence[str] = ()) -> CommTrace:
        """Return the trace, by rank and in each rank as it was added; raises TraceError."""
        numbers = {name: np.frombuffer(column, np.int64) for name, column in self._numbers.items()}
        dependencies = Dependencies(
            offset_N1=np.frombuffer(self._offset, np.int64), row_D=np.frombuffer(self._wait, np.int64)
        )
        axes, tags = tuple(self._axes), tuple(self._tags)
        if (np.diff(numbers["rank"]) < 0).any():
            order_N = np.argsort(numbers["rank"], kind="stable")
            numbers = {name: column[order_N] for name, column in numbers.items()}
            dependencies = _reordered(dependencies, order_N)
            axes, tags = (tuple(texts[row] for row in order_N.tolist()) for texts in (axes, tags))
        return CommTrace(
            groups=self.groups,
            **{f"{name}_N": column for name, column in numbers.items()},
            step_N=np.zeros(len(self), np.int64),
            axis_N=axes,
            policy_N=Texts.constant("none", len(self)),
            tag_N=tags,
            dependencies=dependencies,
            notes=tuple(notes),
        )

    def _group_number(self, group: tuple[int, ...], label: int = 0) -> int:
        """Return the number of a group; its ranks are hashed once for each object, not for each row."""
        known = self._known.get((id(group), label))
        if known is None:
            number = self._number_of.setdefault((group, label), len(self._number_of))
            known = self._known[id(group), label] = group, number
        return known[1]


def _repeated(values: Sequence[int], num_times: int) -> "array[int]":
    return array("q", np.repeat(np.array(values, np.int64), num_times).tobytes())


def _shifted(values: "array[int]", num_times: int, step: int) -> "array[int]":
    """Return the values `num_times`, each time `step` more."""
    shift = np.repeat(np.arange(1, num_times + 1, dtype=np.int64) * step, len(values))
    return array("q", (np.tile(np.frombuffer(values, np.int64), num_times) + shift).tobytes())


def _reordered(dependencies: Dependencies, order_N: IntArray) -> Dependencies:
    """Return the dependencies of rows that stand in another order."""
    place_N = np.empty_like(order_N)
    place_N[order_N] = np.arange(len(order_N))
    length_N = np.diff(dependencies.offset_N1)[order_N]
    offset_N1 = np.concatenate([np.zeros(1, np.int64), np.cumsum(length_N)])
    start_D = np.repeat(dependencies.offset_N1[:-1][order_N] - offset_N1[:-1], length_N)
    row_D = dependencies.row_D[start_D + np.arange(len(start_D))]
    return Dependencies(offset_N1=offset_N1, row_D=place_N[row_D])
