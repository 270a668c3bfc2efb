"""A job's time, cut into periods: the parts that it has, and the outages that some of them belong to."""

from collections.abc import Mapping
from dataclasses import dataclass

KEPT, RECOMPUTED, STALL, OVERHEAD = "kept steps", "recomputed steps", "checkpoint stalls", "overhead"
WAITING, START, RESTORE = "waiting for nodes", "start", "restore"
DETECTION, DECISION, DOWN = "detection", "diagnosis and decision", "ranks down"
CODE, STOPPED, UNKNOWN = "code change", "stopped", "unknown"
PARTS = (
    *(KEPT, RECOMPUTED, STALL, OVERHEAD, DETECTION, DECISION, DOWN, WAITING, CODE, START, RESTORE, STOPPED),
    UNKNOWN,
)
PRODUCTIVE = (KEPT,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """A stretch of time with one part."""

    begin_ns: int
    end_ns: int
    part: str
    generation: int
    step: int = -1  # the last that ended in it; -1 where none did
    num_steps: int = 0
    outage: int = -1  # number of the outage it belongs to

    @property
    def duration_ns(self) -> int:
        """Return its length."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A fault, or another end of a generation, until the next generation trains."""

    number: int
    begin_ns: int
    generation: int  # that it ended
    cause: str
    entity: str


@dataclass(frozen=True, kw_only=True)
class JobTime:
    """A job's time, cut."""

    periods: tuple[Period, ...]  # without gaps, in order
    outages: tuple[Outage, ...]
    gaps: Mapping[str, int]  # what the journal lacks, by what it is, and how often
    is_finished: bool
    num_ranks: int  # 0 where the journal does not say

    @property
    def total_ns(self) -> int:
        """Return the time from the first event to the last."""
        return self.periods[-1].end_ns - self.periods[0].begin_ns if self.periods else 0
