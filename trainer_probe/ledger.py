"""The ledger: the requests of one rank with their times, as a CommTrace; and all ranks' ledgers merged into one.

A request depends on the requests that its rank waited for before it; the work before it counts from the end of the last
such wait. A request issued without a new wait has the dependencies of the request before it. All of this is by the
clock of the rank's work: on a GPU a wait is the time its stream stands still, and not that of the call, which returns
at once.

Left out: work that runs beside a request and ends before its wait does not delay later requests in the trace.

Shapes: N requests.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.layout import Groups
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation, concatenate_traces
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.trainer_probe.clocks import Clock, Reading


@dataclass(frozen=True, kw_only=True)
class Request:
    """A communication request of a rank to one of its groups."""

    operation: Operation
    group: int  # number in the ledger's groups
    num_bytes: int  # nccl-tests' size: the full buffer on one rank
    step: int
    axis: str
    policy: str
    tag: str
    peer: int = UNKNOWN  # rank at the other end of a send or receive


@dataclass(kw_only=True)
class Entry(Generic[Reading]):
    """A recorded request with readings of the clock; those of its wait are filled in later."""

    request: Request
    dependencies: tuple[int, ...]
    work_since: Reading | None  # the origin of time where nothing has been waited for
    issued: Reading
    waited_since: Reading | None = None
    completed: Reading | None = None


class Ledger(Generic[Reading]):
    """The requests of one rank, in program order. `clock` must show the same time on all ranks that are merged."""

    def __init__(self, rank: int, groups: Groups, clock: Clock[Reading]) -> None:
        self._rank = rank
        self._groups = groups
        self._clock = clock
        self._exposed_wait_ns = Counter[str]()
        self._waits: list[tuple[str, Reading, Reading]] = []  # axis, begin and end of those not yet in the sums
        self._entries: list[Entry[Reading]] = []
        self._num_taken = 0
        self.restart(self.now_ns())

    @property
    def clock(self) -> Clock[Reading]:
        """The clock of the rank's work."""
        return self._clock

    @property
    def origin_ns(self) -> int:
        """The origin of time, by the machine's clock."""
        return self._origin_ns

    def now_ns(self) -> int:
        """Return the moment by the machine's clock at which the work so far is done, once it has come."""
        return self._clock.ns(self._clock.read())

    def restart(self, origin_ns: int) -> None:
        """Drop every request and set the origin of time to `origin_ns` of the machine's clock, one for all ranks."""
        self._origin_ns = origin_ns
        self._work_since: Reading | None = None
        self.forget()

    def forget(self) -> None:
        """Drop every request, none of which may be in flight; the origin of time stays."""
        self.exposed_wait_ns()
        self._entries = []
        self._num_taken = 0
        self._waited_for: list[int] = []

    def issue(self, request: Request) -> int:
        """Record a request made now; returns its number."""
        inherited = self._entries[-1].dependencies if self._entries else ()
        self._entries.append(
            Entry(
                request=request,
                dependencies=tuple(self._waited_for) or inherited,
                work_since=self._work_since,
                issued=self._clock.read(),
            )
        )
        self._waited_for.clear()
        return len(self._entries) - 1

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Call `block`, which holds the rank's work until the request is complete, and record for how long."""
        entry = self._entries[request]
        began = entry.waited_since = self._clock.read()
        block()
        ended = entry.completed = self._work_since = self._clock.read()
        self._waits.append((entry.request.axis, began, ended))
        self._waited_for.append(request)

    def exposed_wait_ns(self) -> Mapping[str, int]:
        """Return the time waited for requests by axis, since the ledger was made, dropped requests included."""
        for axis, began, ended in self._waits:
            self._exposed_wait_ns[axis] += self._clock.ns(ended) - self._clock.ns(began)
        self._waits.clear()
        return dict(self._exposed_wait_ns)

    def take_new(self) -> Sequence[Entry[Reading]]:
        """Return the requests since the last call, dropped ones left out."""
        first, self._num_taken = self._num_taken, len(self._entries)
        return self._entries[first:]

    def trace(self) -> CommTrace:
        """Return the requests so far, times from the origin; UNKNOWN for requests not waited for."""

        def column(read: Callable[[Entry[Reading]], int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.fromiter((read(entry) for entry in self._entries), np.int64, len(self._entries))

        def since_origin_ps(reading: Reading | None) -> int:
            return UNKNOWN if reading is None else (self._clock.ns(reading) - self._origin_ns) * PS_PER_NS

        def between_ps(begin: Reading | None, end: Reading | None) -> int:
            if end is None:
                return UNKNOWN
            begin_ns = self._origin_ns if begin is None else self._clock.ns(begin)
            return (self._clock.ns(end) - begin_ns) * PS_PER_NS

        return CommTrace(
            groups=self._groups,
            rank_N=column(lambda entry: self._rank),
            operation_N=column(lambda entry: entry.request.operation),
            group_N=column(lambda entry: entry.request.group),
            peer_N=column(lambda entry: entry.request.peer),
            bytes_N=column(lambda entry: entry.request.num_bytes),
            compute_before_ps_N=column(lambda entry: between_ps(entry.work_since, entry.issued)),
            step_N=column(lambda entry: entry.request.step),
            axis_N=tuple(entry.request.axis for entry in self._entries),
            policy_N=tuple(entry.request.policy for entry in self._entries),
            tag_N=tuple(entry.request.tag for entry in self._entries),
            dependencies=Dependencies.from_lists([entry.dependencies for entry in self._entries]),
            issue_ps_N=column(lambda entry: since_origin_ps(entry.issued)),
            complete_ps_N=column(lambda entry: since_origin_ps(entry.completed)),
            exposed_wait_ps_N=column(lambda entry: between_ps(entry.waited_since, entry.completed)),
        )


def merge(traces: Sequence[CommTrace]) -> CommTrace:
    """Return the traces of all ranks as one, rank after rank; raises TraceError where their groups differ."""
    groups = traces[0].groups
    for place, trace in enumerate(traces):
        if trace.groups != groups:
            raise TraceError(
                Mistake(where=f"ledger {place}", found="other groups than ledger 0", allowed="ledgers of one job")
            )
    return concatenate_traces(traces)
