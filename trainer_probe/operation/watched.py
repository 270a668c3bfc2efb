"""A training that writes a page: its requests through the ledger, its sections and steps through a hook.

A collective counts under its group's number in the ledger, a message under the number of its pair of ranks
(`message_group`), on both sides in order. A wait that fails stays on the page: it is what the rank waited for. So does
a wait for the loader.

Left out: on a GPU a wait returns at once and the stream stands still instead, so that the page shows the requests made
and not the one that the stream waits for.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fabrictune.foundation.layout import Groups
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.clocks import Clock, Reading
from fabrictune.trainer_probe.ledger import Ledger, Request
from fabrictune.trainer_probe.operation.observations import message_group
from fabrictune.trainer_probe.operation.pages import RankPage
from fabrictune.trainer_probe.training.hooks import Hook, Run, Take

if TYPE_CHECKING:
    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.training.progress import StepReport


class WatchedLedger(Ledger[Reading]):
    """A ledger that writes to a page which requests it records and which one the rank waits for."""

    def __init__(self, rank: int, groups: Groups, clock: Clock[Reading], page: RankPage) -> None:
        self._page = page
        self._own_rank = rank
        self._num_ranks = 1 + max(max(ranks) for ranks in groups)
        self._counted: list[tuple[int, int, str]] = []  # group, number and tag by request
        super().__init__(rank, groups, clock)

    def forget(self) -> None:
        """Drop every request, none of which may be in flight; the page's counts go on."""
        super().forget()
        self._counted = []

    def issue(self, request: Request) -> int:
        """Record a request made now; returns its number."""
        group = self._group_of(request)
        number = self._page.issue(group, request.tag, request.num_bytes, request.operation)
        self._counted.append((group, number, request.tag))
        return super().issue(request)

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Call `block`, which holds the rank's work until the request is complete, and record for how long."""
        group, number, tag = self._counted[request]
        self._page.wait(group, number, tag)
        super().wait(request, block)
        self._page.complete(group, number)

    def _group_of(self, request: Request) -> int:
        if request.operation is Operation.SEND:
            return message_group(self._own_rank, request.peer, self._num_ranks)
        if request.operation is Operation.RECEIVE:
            return message_group(request.peer, self._own_rank, self._num_ranks)
        return request.group


def page_hook(page: RankPage) -> Hook:
    """Return the hook that writes the sections and steps of a training; others write "load", "save" and "end"."""
    is_first = True

    def begin(run: Run, step: int) -> None:
        page.step(step)
        page.section("first step" if is_first else "step")

    def end(run: Run, report: "StepReport") -> None:
        nonlocal is_first
        is_first = False
        page.step(run.step)
        page.section("step")

    return Hook(before_step=begin, after_step=end, take_of=loader_waits_of(page))


def loader_waits_of(page: RankPage) -> "Callable[[Take], Take]":
    """Return the wrapper of how micro-batches are taken that writes to a page while the rank waits for its loader."""

    def wrap(take: "Take") -> "Take":
        def watched_take() -> "Sequence[MicroBatch]":
            page.wait_for_service("loader")
            batches = take()
            page.done_waiting()
            return batches

        return watched_take

    return wrap
