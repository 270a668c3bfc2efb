"""The ledger: the requests of one rank with their times, as a CommTrace; and all ranks' ledgers merged into one.

A request depends on the requests that its rank waited for before it; the work before it counts from the end of the last
such wait. A request issued without a new wait has the dependencies of the request before it.

Left out: work that runs beside a request and ends before its wait does not delay later requests in the trace.

Shapes: N requests.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.layout import AXES, ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation, concatenate_traces
from fabrictune.foundation.units import PS_PER_NS

Groups = tuple[tuple[int, ...], ...]


def axis_groups(layout: ParallelLayout) -> Groups:
    """Return the ranks of every group of a layout, each in ring order, axis after axis."""
    return tuple(tuple(ranks) for axis in AXES for ranks in layout.groups(axis).tolist())


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
class _Entry:
    """A recorded request; its times are filled in later."""

    request: Request
    dependencies: tuple[int, ...]
    compute_before_ns: int
    issue_ns: int
    complete_ns: int = UNKNOWN
    exposed_wait_ns: int = UNKNOWN


class Ledger:
    """The requests of one rank, in program order. `clock_ns` must be the same clock on all ranks that are merged."""

    def __init__(self, rank: int, groups: Groups, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self.clock_ns = clock_ns
        self._rank = rank
        self._groups = groups
        self.exposed_wait_ns = Counter[str]()  # by axis, since the ledger was made
        self.restart(clock_ns())

    def restart(self, origin_ns: int) -> None:
        """Drop every request and set the origin of time to `origin_ns` of the clock, the same for all ranks."""
        self._origin_ns = origin_ns
        self._work_since_ns = origin_ns
        self.forget()

    def forget(self) -> None:
        """Drop every request, none of which may be in flight; the origin of time stays."""
        self._entries: list[_Entry] = []
        self._waited_for: list[int] = []

    def issue(self, request: Request) -> int:
        """Record a request made now; returns its number."""
        now_ns = self.clock_ns()
        inherited = self._entries[-1].dependencies if self._entries else ()
        self._entries.append(
            _Entry(
                request=request,
                dependencies=tuple(self._waited_for) or inherited,
                compute_before_ns=now_ns - self._work_since_ns,
                issue_ns=now_ns,
            )
        )
        self._waited_for.clear()
        return len(self._entries) - 1

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Call `block`, which returns when the request is complete, and record how long it took."""
        began_ns = self.clock_ns()
        block()
        ended_ns = self.clock_ns()
        entry = self._entries[request]
        entry.complete_ns = ended_ns
        entry.exposed_wait_ns = ended_ns - began_ns
        self.exposed_wait_ns[entry.request.axis] += entry.exposed_wait_ns
        self._waited_for.append(request)
        self._work_since_ns = ended_ns

    def trace(self) -> CommTrace:
        """Return the requests so far, times from the origin; UNKNOWN for requests not waited for."""

        def column(read: Callable[[_Entry], int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.fromiter((read(entry) for entry in self._entries), np.int64, len(self._entries))

        def since_origin_ps(moment_ns: int) -> int:
            return UNKNOWN if moment_ns == UNKNOWN else (moment_ns - self._origin_ns) * PS_PER_NS

        def as_ps(duration_ns: int) -> int:
            return UNKNOWN if duration_ns == UNKNOWN else duration_ns * PS_PER_NS

        return CommTrace(
            groups=self._groups,
            rank_N=column(lambda entry: self._rank),
            operation_N=column(lambda entry: entry.request.operation),
            group_N=column(lambda entry: entry.request.group),
            peer_N=column(lambda entry: entry.request.peer),
            bytes_N=column(lambda entry: entry.request.num_bytes),
            compute_before_ps_N=column(lambda entry: as_ps(entry.compute_before_ns)),
            step_N=column(lambda entry: entry.request.step),
            axis_N=tuple(entry.request.axis for entry in self._entries),
            policy_N=tuple(entry.request.policy for entry in self._entries),
            tag_N=tuple(entry.request.tag for entry in self._entries),
            dependencies=Dependencies.from_lists([entry.dependencies for entry in self._entries]),
            issue_ps_N=column(lambda entry: since_origin_ps(entry.issue_ns)),
            complete_ps_N=column(lambda entry: since_origin_ps(entry.complete_ns)),
            exposed_wait_ps_N=column(lambda entry: as_ps(entry.exposed_wait_ns)),
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
