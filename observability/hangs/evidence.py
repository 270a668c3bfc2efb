"""Evidence of a job that stands still: processes, groups, their requests, and signs of single processes.

A source is one format of one job. It says what it knows: a request's number counts in its group and by the source's own
count, so that numbers of two sources are never compared. None stands for what a source does not say.

Left out: messages in groups of more than two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

UNKNOWN = -1
MAX_REQUESTS = 64  # of one process and group that are kept
MAX_TIMINGS = 16  # of one process and group that are kept, the newest


class SignKind(StrEnum):
    """What a sign says of a process."""

    GONE = "gone"  # it has ended
    STOPPED = "stopped"  # by a signal
    FAILED = "failed"  # it has an error
    STACK = "stack"
    SILENT = "silent"  # it did not answer, or wrote nothing where the others did
    BUSY = "busy"  # it uses its processor, and issues nothing
    LOADING = "loading"  # it waits for data
    ALIVE = "alive"  # it did what others only do while they wait for nothing


@dataclass(frozen=True, kw_only=True)
class Who:
    """A process, as far as a source names it; on one GPU, or with the first of its GPUs."""

    rank: int = UNKNOWN  # of the job
    host: str = ""
    pid: int = UNKNOWN
    gpu: int = UNKNOWN

    def __str__(self) -> str:
        """The process for people: `rank 5 (GPU 1 of host b, process 123)`."""
        gpu = f"GPU {self.gpu}" if self.gpu != UNKNOWN else ""
        place = " of host ".join(filter(None, (gpu, self.host))) if gpu else self.host and f"host {self.host}"
        process = f"process {self.pid}" if self.pid != UNKNOWN else ""
        about = ", ".join(filter(None, (place, process)))
        if self.rank == UNKNOWN:
            return about or "a process not named"
        return f"rank {self.rank} ({about})" if about else f"rank {self.rank}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request of a process to a group, as far as it is known."""

    kind: str = ""  # all_reduce
    size: int = UNKNOWN  # in the source's unit
    tag: str = ""  # what it is for, or the line that issued it
    num_bytes: int = UNKNOWN  # nccl-tests' size

    def __str__(self) -> str:
        """The request for people."""
        size = f" of {self.size:,}" if self.size != UNKNOWN else ""
        return f"{self.kind or 'request'}{size}" + (f" ({self.tag})" if self.tag else "")


@dataclass(frozen=True, kw_only=True)
class Group:
    """A communicator, or a process group."""

    name: str  # within its source
    label: str = ""  # the axis, or what its maker calls it
    communicator: str = ""  # NCCL's hash, which all sources of NCCL share
    size: int = UNKNOWN
    members: Mapping[int, Who] = field(default_factory=dict)  # by place
    is_job: bool = False  # its places are the job's ranks


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a process has come in a group: numbers of the last request issued, started and completed."""

    who: Who
    group: str
    where: str
    issued: int | None = None
    started: int | None = None
    completed: int | None = None
    waits_for: int | None = None  # a request, where the source knows what the process waits for
    requests: Mapping[int, Request] = field(
        default_factory=dict
    )  # by number: those not complete, or the last ones where a source does not say
    counts: Mapping[str, int] = field(default_factory=dict)  # requests issued by kind
    time_us: int | None = None  # of the last completion, by the host's clock


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A fact about a process."""

    who: Who
    kind: SignKind
    text: str
    where: str
    frames: tuple[str, ...] = ()  # of its main thread, the innermost first: `all_reduce (distributed_c10d.py:2219)`


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long a request took, or has been open so far."""

    who: Who
    group: str
    number: int
    request: Request
    elapsed_us: float
    is_complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What one source says of a job."""

    source: str
    groups: tuple[Group, ...] = ()
    progress: tuple[Progress, ...] = ()
    signs: tuple[Sign, ...] = ()
    timings: tuple[Timing, ...] = ()
    steps_us: tuple[float, ...] = ()  # how long steps took while all was well
    knows_waits: bool = False  # a process without `waits_for` waits for nothing
    tells_all: bool = True  # a member of a group without progress is silent; else it was perhaps not asked
    num_files: int = 1
    notes: tuple[str, ...] = ()  # what was not read, or assumed
