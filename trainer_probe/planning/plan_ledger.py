"""The ledger of a plan: it records work besides requests, and replays recordings; and its clock of matrix products.

A measured ledger leaves out work that runs beside a request and ends before its wait. Here such work is a barrier of
this rank alone, with the work in front of it, on which later requests depend too; so that on a network that takes no
time a rank's requests still take as long as its work.

Source: torch.utils.flop_counter for the operations of each product; a multiplication and an addition are two.
Left out: time bound by memory and not by products (norms, activations, the optimizer).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.foundation.units import NS_PER_S
from fabrictune.trainer_probe.ledger import Groups, Ledger, Request

_NOT_MEASURED = np.zeros(0, np.int64)


class ProductClock(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """A clock that advances with matrix products, executed while it is entered or replayed, and with nothing else."""

    def __init__(self, flops_per_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.flops = 0
        self._flops_per_s = flops_per_s

    def now_ns(self) -> int:
        """Return the time so far, in ns."""
        return round(self.flops / self._flops_per_s * NS_PER_S)

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator, and count its operations if it is a product."""
        result = operator(*args, **(kwargs or {}))
        count = flop_registry.get(operator.overloadpacket)
        if count is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=result)
        return result


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A request, or a wait for one of the recording's requests by its number, and the operations before it."""

    flops_before: int
    subject: Request | int


@dataclass(kw_only=True)
class Recording:
    """Requests and waits in order, and the operations after the last of them."""

    events: list[_Event] = field(default_factory=list)
    flops_after: int = 0


class PlanLedger(Ledger):
    """The requests of one rank, timed by its matrix products."""

    def __init__(self, rank: int, groups: Groups, clock: ProductClock) -> None:
        super().__init__(rank, (*groups, (rank,)), clock.now_ns)
        self._work_group = len(groups)
        self._clock = clock
        self._recording: Recording | None = None
        self._recorded: dict[int, int] = {}  # number in the recording by number in the ledger
        self._flops_recorded = 0

    def issue(self, request: Request) -> int:
        """Record a request made now; returns its number."""
        number = super().issue(request)
        if self._recording is not None:
            self._recorded[number] = len(self._recorded)
            self._record(self._recording, request)
        return number

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Record the work beside a request that no other request covers, then its completion."""
        self._record_work(self._entries[request].issue_ns)
        if self._recording is not None:
            self._record(self._recording, self._recorded[request])
        super().wait(request, block)

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """Yield a recording of the block's requests and waits; a wait must be for a request of the block."""
        self._recording = recording = Recording()
        self._recorded.clear()
        self._flops_recorded = self._clock.flops
        yield recording
        self._recording = None
        recording.flops_after = self._clock.flops - self._flops_recorded

    def replay(self, recording: Recording, *, old: str, new: str) -> None:
        """Record it all again, with tags that begin with `new` instead of `old`."""
        numbers: list[int] = []
        for event in recording.events:
            self._clock.flops += event.flops_before
            if isinstance(event.subject, int):
                self.wait(numbers[event.subject], _nothing)
            else:
                assert event.subject.tag.startswith(old), "a pass begins its requests' tags with its own"
                tag = new + event.subject.tag.removeprefix(old)
                numbers.append(self.issue(replace(event.subject, tag=tag)))
        self._clock.flops += recording.flops_after

    def trace(self) -> CommTrace:
        """Return the requests so far and the work after the last; times of a plan are UNKNOWN."""
        self._record_work(self._entries[-1].issue_ns if self._entries else self._origin_ns)
        return replace(
            super().trace(), issue_ps_N=_NOT_MEASURED, complete_ps_N=_NOT_MEASURED, exposed_wait_ps_N=_NOT_MEASURED
        )

    def _record(self, recording: Recording, subject: Request | int) -> None:
        recording.events.append(_Event(flops_before=self._clock.flops - self._flops_recorded, subject=subject))
        self._flops_recorded = self._clock.flops

    def _record_work(self, covered_until_ns: int) -> None:
        """Record the work that neither a request made at that moment nor the requests waited for since cover."""
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
    """Complete at once."""
