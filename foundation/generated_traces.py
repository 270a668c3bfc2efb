"""GeneratedTrace: a TrafficTrace whose rows are made when they are read, and forgotten after.

The transfers of a large job follow from a few tables: millions of rows repeat the schedules of its collectives. Who
reads such a trace range by range (`column`, `waits`) holds `CHUNK_ROWS` of them at a time; who asks for a whole column
gets it, made for the occasion.

Shapes: N rows, D dependencies.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.traces import Dependencies, TracedJob, TrafficTrace


class RowSource(Protocol):
    """What the rows of a generated trace are made from."""

    def __len__(self) -> int: ...

    def column(self, name: str, begin: int, end: int) -> IntArray:
        """Return rows `begin` to `end` - 1 of a column."""

    def waits(self, begin: int, end: int) -> Dependencies:
        """Return what these rows wait for: offsets from 0, rows of the whole trace."""


class GeneratedTrace(TrafficTrace):
    """A trace of rows that are made when they are read; its source sees to it that they wait in no circle."""

    _source: RowSource

    def __init__(self, source: RowSource, notes: Sequence[str] = (), jobs: Sequence[TracedJob] = ()) -> None:
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "notes", tuple(notes))
        object.__setattr__(self, "jobs", tuple(jobs))

    def __len__(self) -> int:
        return len(self._source)

    def __getattr__(self, name: str) -> Any:
        """Return a whole column, or all dependencies."""
        if name == "dependencies":
            return join_dependencies([self.waits(begin, end) for begin, end in ranges(0, len(self))])
        if name.endswith("_N"):
            return self.column(name, 0, len(self))
        raise AttributeError(name)

    def with_notes(self, notes: Sequence[str]) -> "GeneratedTrace":
        """Return the trace with these notes behind its own."""
        return GeneratedTrace(self._source, (*self.notes, *notes))

    def column(self, name: str, begin: int, end: int) -> IntArray:
        """Return rows `begin` to `end` - 1 of a column."""
        return self._source.column(name, begin, end)

    def waits(self, begin: int, end: int) -> Dependencies:
        """Return what rows `begin` to `end` - 1 wait for."""
        return self._source.waits(begin, end)

    def written_out(self) -> TrafficTrace:
        """Return the trace with all its rows in memory."""
        columns = {name: getattr(self, name) for name in TrafficTrace.__annotations__}
        return TrafficTrace(**columns)


def join_dependencies(parts: Sequence[Dependencies]) -> Dependencies:
    """Return the dependencies of rows one after another; each part's offsets begin at 0."""
    num_waits = np.concatenate([np.diff(part.offset_N1) for part in parts] or [np.zeros(0, np.int64)])
    return Dependencies(
        offset_N1=np.concatenate([[0], np.cumsum(num_waits)]),
        row_D=np.concatenate([part.row_D for part in parts] or [np.zeros(0, np.int64)]),
    )
