"""Requests like one another, and how long they took: of one operation and size, in groups of as many
members and hosts.

Of the times that members measured of one request the shortest is its own: that member came last, and waited for none.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from fabrictune.foundation.traces import Operation
from fabrictune.observability.hangs.diagnosis import Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN, Request
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.operations import operation_of

MIN_ALIKE = 3  # requests that say how long one like them takes

Sort = tuple[Operation | str, int, int, int]  # operation, bytes or size, members, and their hosts


@dataclass(frozen=True, kw_only=True)
class TimedGroup:
    """The requests of one sort and group that a source has timed: by number the time on each process."""

    source: str
    group: int
    times_us: dict[int, dict[int, float]] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)

    @property
    def own_us(self) -> Sequence[float]:
        """The own time of each request."""
        return [min(times.values()) for times in self.times_us.values()]

    @property
    def longest_us(self) -> Sequence[float]:
        """The time of the member that waits longest, of each request."""
        return [max(times.values()) for times in self.times_us.values()]


@dataclass(frozen=True, kw_only=True)
class UsualTime:
    """How long requests like one take, in the middle nine tenths of them."""

    low_us: float
    median_us: float
    high_us: float
    basis: str


def timed_groups(job: Job) -> Mapping[Sort, Sequence[TimedGroup]]:
    """Return the complete requests that were timed, by what they have in common."""
    found: defaultdict[Sort, dict[tuple[str, int], TimedGroup]] = defaultdict(dict)
    for one in job.timings:
        if one.timing.is_complete:
            sort = sort_of(one.timing.request, one.group, job)
            new = TimedGroup(source=one.source, group=one.group)
            timed = found[sort].setdefault((one.source, one.group), new)
            timed.times_us.setdefault(one.timing.number, {})[one.process] = one.timing.elapsed_us
            timed.requests[one.timing.number] = one.timing.request
    return {sort: tuple(groups.values()) for sort, groups in found.items()}


def timed_alike(request: Request, group: int, job: Job) -> Sequence[TimedGroup]:
    """Return the groups that make requests like one of a group, that itself among them."""
    return timed_groups(job).get(sort_of(request, group, job), ())


def sort_of(request: Request, group: int, job: Job) -> Sort:
    """Return what requests like one of a group have in common."""
    hosts = {job.processes[process].host for process in job.groups[group].members.values()}
    size = request.num_bytes if request.num_bytes != UNKNOWN else request.size
    return operation_of(request.kind) or request.kind, size, job.groups[group].size, len(hosts)


def usual_time(request: Request, group: int, job: Job) -> UsualTime | None:
    """Return how long requests like one take in its group, or else in others of its size; None for too few."""
    alike = timed_alike(request, group, job)
    for groups, whose in (
        ([timed for timed in alike if timed.group == group], "its group"),
        ([timed for timed in alike if timed.group != group], "groups like its own"),
    ):
        times = [time for timed in groups for time in timed.own_us]
        if len(times) >= MIN_ALIKE:
            sources = ", ".join(dict.fromkeys(timed.source for timed in groups))
            low, high = middle_of(times)
            basis = f"{len(times):,} requests like it of {whose} ({sources})"
            return UsualTime(low_us=low, median_us=median(times), high_us=high, basis=basis)
    return None


def request_of(diagnosis: Diagnosis, job: Job) -> Request | None:
    """Return the request that a diagnosis is about, None where no source says what it is."""
    number = diagnosis.number
    tables = (table for table in job.tables if (table.source, table.group) == (diagnosis.source, diagnosis.group))
    rows = (row for table in tables for row in table.rows.values())
    return None if number is None else next((row.requests[number] for row in rows if number in row.requests), None)


def open_us(diagnosis: Diagnosis, job: Job) -> float | None:
    """Return for how long a request of a diagnosis's group has been open, None where no source says it."""
    is_open = (one for one in job.timings if not one.timing.is_complete and one.group == diagnosis.group)
    return max((one.timing.elapsed_us for one in is_open), default=None)


def middle_of(values: Iterable[float]) -> tuple[float, float]:
    """Return the ends of the middle nine tenths of values."""
    ordered = sorted(values)
    cut = len(ordered) // 20
    return ordered[cut], ordered[-1 - cut]
