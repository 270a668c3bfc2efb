"""A diagnosis: who keeps a job from going on, why, how sure that is, and on what it rests."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why others wait for a process."""

    GONE = "process gone"
    STOPPED = "process stopped"
    LOADER = "stands in its data loader"
    CHECKPOINT = "stands in a checkpoint"
    COLLECTION = "stands in a garbage collection"
    COMPILATION = "stands in a compilation"
    MISMATCH = "asks for another request than the others"
    TRANSPORT = "does not complete a request that all have issued"
    NOT_STARTED = "has issued a request that its GPU has not started"
    FAILED = "has an error"
    MISSING = "has not issued a request that the others wait for"
    EARLIEST = "completed its last request before all others"
    SKIPPED = "has issued its requests in another order than the members of its groups"
    DEADLOCK = "waits in a circle"
    SLOW = "takes longer for its requests than other groups like it"
    LATE = "comes last to the requests of its group, again and again"

    @property
    def stands_still(self) -> bool:
        """Whether the job does not go on, rather than slowly."""
        return self not in (Cause.SLOW, Cause.LATE)


class Certainty(StrEnum):
    """How far a diagnosis follows from its evidence."""

    CERTAIN = "certain"  # a source says so of the process itself
    LIKELY = "likely"  # it follows from the others' requests
    POSSIBLE = "possible"  # other answers fit as well


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Who waits for whom, and for what."""

    waiter: int
    blocker: int
    group: int
    number: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The answer for one job; processes by their numbers in it."""

    cause: Cause
    certainty: Certainty
    processes: tuple[int, ...]  # that keep the others waiting
    group: int | None = None  # whose request is held up
    number: int | None = None  # of the request, as the source counts
    request: str = ""  # what it is
    source: str = ""  # that says so
    num_waiting: int = 0  # processes that wait for them in the end
    edges: tuple[Edge, ...] = ()
    evidence: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
