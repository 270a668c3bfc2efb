"""Timeline: what is drawn: tracks, slices on them, arrows between slices, counters, and what to know of it all.

A source (`job.py`, `simulation.py`) makes a timeline; `perfetto.py` writes it. Times are whole nanoseconds.

Shapes: P processes, T tracks, N slices, A arrows, C counter values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN

Fact = str | int | float


def no_integers() -> IntArray:
    """Return an empty column."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Process:
    """A box of tracks, such as a host; its labels stand beside its name."""

    name: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Track:
    """A row of a process: of slices that nest, or of a counter."""

    process: int
    name: str
    parent: int = UNKNOWN  # track that it lies under; UNKNOWN right under its process
    thread: int = UNKNOWN  # number of the thread that it is, one in the whole timeline; UNKNOWN where it is none
    is_counter: bool = False
    unit: str = ""  # of a counter


@dataclass(frozen=True, kw_only=True)
class Slices:
    """N slices in any order; two of a track lie apart, or one in the other: of two that are equal in the first."""

    track_N: IntArray
    name_N: Texts
    start_ns_N: IntArray
    end_ns_N: IntArray
    facts: Mapping[str, IntArray] = field(default_factory=dict)  # N of each, shown with a slice where not UNKNOWN

    def __len__(self) -> int:
        return len(self.track_N)


@dataclass(frozen=True, kw_only=True)
class Arrows:
    """A arrows: the slice `to_A` starts at or after `from_A`, for it needs what that has."""

    from_A: IntArray = field(default_factory=no_integers)
    to_A: IntArray = field(default_factory=no_integers)

    def __len__(self) -> int:
        return len(self.from_A)


@dataclass(frozen=True, kw_only=True)
class Counters:
    """C values of counters; each holds until the next of its track."""

    track_C: IntArray = field(default_factory=no_integers)
    time_ns_C: IntArray = field(default_factory=no_integers)
    value_C: FloatArray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """What is drawn. `facts` is what a reader must know: errors of clocks, what was left out, where it is from."""

    processes: tuple[Process, ...]
    tracks: tuple[Track, ...]
    slices: Slices
    arrows: Arrows = field(default_factory=Arrows)
    counters: Counters = field(default_factory=Counters)
    facts: Mapping[str, Fact] = field(default_factory=dict)
