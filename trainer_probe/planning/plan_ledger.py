"""The ledger of a plan: it records work besides requests, and replays recordings.

A measured ledger leaves out work that runs beside a request and ends before its wait. Here such work is a barrier of
this rank alone, with the work in front of it, on which later requests depend too; so that on a network that takes no
time a rank's requests still take as long as its work.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.layout import Groups
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.trainer_probe.clocks import HostClock
from fabrictune.trainer_probe.ledger import Ledger, Request
from fabrictune.trainer_probe.planning.operation_clock import DURATIONS, Key, OperationClock

_NOT_MEASURED = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A request, or a wait for one of the recording's requests by its number, and the time before it."""

    before_ps: int
    subject: Request | int


@dataclass(kw_only=True)
class Recording:
    """Requests and waits in order, the time after the last of them, and all operations."""

    events: list[_Event] = field(default_factory=list)
    after_ps: int = 0
    totals: Sequence[Counter[Key]] = ()

    @property
    def duration_ps(self) -> Counter[Key]:
        """Time of the operations by part, name and bound."""
        return self.totals[DURATIONS]


class PlanLedger(Ledger[int]):
    """The requests of one rank, timed by its operations."""

    def __init__(self, rank: int, groups: Groups, clock: OperationClock) -> None:
        self._operations = clock
        super().__init__(rank, (*groups, (rank,)), HostClock(clock.now_ns))
        self._work_group = len(groups)
        self._recording: Recording | None = None
        self._recorded: dict[int, int] = {}  # number in the recording by number in the ledger
        self._recorded_ps = 0

    def issue(self, request: Request) -> int:
        """Record a request made now; returns its number."""
        number = super().issue(request)
        if self._recording is not None:
            self._recorded[number] = len(self._recorded)
            self._record(self._recording, request)
        return number

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Record the work beside a request that no other request covers, then its completion."""
        self._record_work(self._entries[request].issued)
        if self._recording is not None:
            self._record(self._recording, self._recorded[request])
        super().wait(request, block)

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Yield a recording of the block's requests and waits; a wait must be for a request of the block."""
        self._recording = recording = Recording()
        self._recorded.clear()
        self._recorded_ps, before = self._operations.elapsed_ps, self._operations.totals()
        yield recording
        self._recording = None
        recording.after_ps = self._operations.elapsed_ps - self._recorded_ps
        recording.totals = [after - earlier for after, earlier in zip(self._operations.totals(), before, strict=True)]

    def replay(self, recording: Recording, *, old: str, new: str) -> None:
        """Record it all again, with tags that begin with `new` instead of `old`."""
        numbers: list[int] = []
        for event in recording.events:
            self._operations.advance(event.before_ps)
            if isinstance(event.subject, int):
                self.wait(numbers[event.subject], _nothing)
            else:
                assert event.subject.tag.startswith(old), "a pass begins its requests' tags with its own"
                tag = new + event.subject.tag.removeprefix(old)
                numbers.append(self.issue(replace(event.subject, tag=tag)))
        self._operations.advance(recording.after_ps)
        self._operations.add(recording.totals)

    def trace(self) -> CommTrace:
        """Return the requests so far and the work after the last; times of a plan are UNKNOWN."""
        self._record_work(self._entries[-1].issued if self._entries else self._origin_ns)
        return replace(
            super().trace(), issue_ps_N=_NOT_MEASURED, complete_ps_N=_NOT_MEASURED, exposed_wait_ps_N=_NOT_MEASURED
        )

    def _record(self, recording: Recording, subject: Request | int) -> None:
        recording.events.append(_Event(before_ps=self._operations.elapsed_ps - self._recorded_ps, subject=subject))
        self._recorded_ps = self._operations.elapsed_ps

    def _record_work(self, covered_until_ns: int) -> None:
        """Record the work that neither a request made at that moment nor the requests waited for since cover."""
        if self._waited_for and self._work_since is not None:
            covered_until_ns = max(covered_until_ns, self._work_since)
        if self._operations.now_ns() <= covered_until_ns:
            return
        step = self._entries[-1].request.step if self._entries else 0
        number = super().issue(
            Request(
                operation=Operation.BARRIER,
                group=self._work_group,
                num_bytes=0,
                step=step,
                axis=ALONE,
                policy="none",
                tag=ALONE,
            )
        )
        self._waited_for.append(number)
        self._work_since = self._operations.now_ns()


def _nothing() -> None:
    """Complete at once."""
