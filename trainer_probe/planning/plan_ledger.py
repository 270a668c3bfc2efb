"""The ledger of a plan: it enters work for itself, and what it has been told once it can be told again.

A measured ledger leaves out work that runs beside a request and ends before its wait. Here such work is a barrier of
this rank alone, with the work in front of it, and what follows the wait waits for it too; so that on a network that
takes no time a rank's requests still take as long as its work.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.trainer_probe.ledger import Groups, Ledger, Request
from fabrictune.trainer_probe.planning.flop_clock import ProductClock

_NOT_MEASURED = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A request, or a wait for one of the recording's requests, by its number; and the products before it."""

    flops_before: int
    subject: Request | int


@dataclass(kw_only=True)
class Recording:
    """What was entered for a while, in order, and the products behind the last of it."""

    events: list[_Event] = field(default_factory=list)
    flops_behind: int = 0


class PlanLedger(Ledger):
    """The requests of one rank, whose time is that of its products."""

    def __init__(self, rank: int, groups: Groups, clock: ProductClock) -> None:
        super().__init__(rank, (*groups, (rank,)), clock.now_ns)
        self._work_group = len(groups)
        self._clock = clock
        self._recording: Recording | None = None
        self._recorded: dict[int, int] = {}  # number in the recording by number in the ledger
        self._flops_recorded = 0

    def issue(self, request: Request) -> int:
        """Enter a request made now; returns its number."""
        number = super().issue(request)
        if self._recording is not None:
            self._recorded[number] = len(self._recorded)
            self._record(self._recording, request)
        return number

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Enter the work beside a request that nothing else stands for, then that it is complete."""
        self._enter_work(self._entries[request].issue_ns)
        if self._recording is not None:
            self._record(self._recording, self._recorded[request])
        super().wait(request, block)

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Give what is entered while the block runs; what is waited for in it must be asked for in it."""
        self._recording = found = Recording()
        self._recorded.clear()
        self._flops_recorded = self._clock.flops
        yield found
        self._recording = None
        found.flops_behind = self._clock.flops - self._flops_recorded

    def repeat(self, recording: Recording, *, old: str, new: str) -> None:
        """Enter it all again, under names that begin with `new` instead of `old`."""
        numbers: list[int] = []
        for event in recording.events:
            self._clock.flops += event.flops_before
            if isinstance(event.subject, int):
                self.wait(numbers[event.subject], _nothing)
            else:
                assert event.subject.tag.startswith(old), "a pass names its requests by its tag"
                tag = new + event.subject.tag.removeprefix(old)
                numbers.append(self.issue(replace(event.subject, tag=tag)))
        self._clock.flops += recording.flops_behind

    def trace(self) -> CommTrace:
        """Return the requests so far and the work behind the last; when they were made is not known."""
        self._enter_work(self._entries[-1].issue_ns if self._entries else self._origin_ns)
        return replace(
            super().trace(), issue_ps_N=_NOT_MEASURED, complete_ps_N=_NOT_MEASURED, exposed_wait_ps_N=_NOT_MEASURED
        )

    def _record(self, recording: Recording, subject: Request | int) -> None:
        recording.events.append(_Event(flops_before=self._clock.flops - self._flops_recorded, subject=subject))
        self._flops_recorded = self._clock.flops

    def _enter_work(self, covered_until_ns: int) -> None:
        """Enter the work that neither a request made at that moment nor those waited for since have before them."""
        if self._waited_for:
            covered_until_ns = max(covered_until_ns, self._work_since_ns)
        if self._clock.now_ns() <= covered_until_ns:
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
        self._work_since_ns = self._clock.now_ns()


def _nothing() -> None:
    """Stand for a request that is complete at once."""
