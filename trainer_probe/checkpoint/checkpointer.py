"""Checkpointer: the hook that saves a rank's state every so many steps, beside the steps.

After such a step each rank stages its pieces to a free buffer (`staging.py`) and hands them to the writers of its
storages (`tier.py`). All ranks save or skip alike: whether a rank's shared storages are still busy is part of the
step's own sums, so that no save waits for an agreement. A node's own storage is quick and never skipped but when it
hangs.

Before the first step ranks exchange which elements they hold, so that of those that several hold one is the writer.
"""

import json
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Literal

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.spans import SpanKind
from fabrictune.trainer_probe.checkpoint.division import (
    Span,
    cut_ranges,
    part_sizes,
    spans_of,
)
from fabrictune.trainer_probe.checkpoint.entries import Range, View, data_bytes, lay_out
from fabrictune.trainer_probe.checkpoint.host_memory import check_host_memory
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.saves import FilePlan, Save, SaveReport, Writer
from fabrictune.trainer_probe.checkpoint.staging import Stager
from fabrictune.trainer_probe.checkpoint.tier import Tier, TierWriter
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.training.hooks import Hook, Run
from fabrictune.trainer_probe.training.progress import StepReport
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts

NUM_BUFFERS = 2
NODE_WAIT_S = 30.0  # for a node's own storage to take the save before

WhenBusy = Literal["skip", "wait"]
_TIMEOUTS = SectionTimeouts()


class Checkpointer:
    """Saves of one rank; its `hook` takes part in a run, and `close` ends it.

    A save is due after every `save_every`-th step, and goes to the storages whose turn it is; that of
    `last_step`, before which the run ends, goes to all, and waits for those before it. What becomes of each is
    given to `on_report`, which a thread calls. `generation` is this start's number, higher than those before.
    """

    def __init__(
        self,
        comm: Comm,
        tiers: Sequence[Tier],
        *,
        save_every: int,
        generation: int = 0,
        num_local_ranks: int = 1,
        last_step: int | None = None,
        when_busy: WhenBusy = "skip",
        timeouts: SectionTimeouts = _TIMEOUTS,
        on_report: Callable[[SaveReport], None] = lambda report: None,
    ) -> None:
        """Make nothing yet; raises InputError for an interval or a tier without effect."""
        numbers = {"save_every": save_every, **{f"tier {place}: every": tier.every for place, tier in enumerate(tiers)}}
        wrong = [
            Mistake(where=name, found=str(number), allowed="1 or more")
            for name, number in numbers.items()
            if number < 1
        ]
        if wrong:
            raise InputError(*wrong)
        self._comm, self._tiers = comm, tuple(tiers)
        self._save_every, self._generation, self._num_local_ranks = save_every, generation, num_local_ranks
        self._end_step = last_step
        self._when_busy, self._timeouts, self._on_report = when_busy, timeouts, on_report
        self._writers: list[TierWriter] = []
        self._stager: Stager | None = None
        self._current: Save | None = None
        self._last_step: dict[str, int] = {}  # saved last, by storage
        self.hook = Hook(
            before_step=self._before_step,
            after_step=self._after_step,
            before_update=self._before_update,
            is_busy=self._is_busy,
            span=SpanKind.CHECKPOINT,
        )

    def close(self, timeout_s: float | None = None) -> bool:
        """Return whether all saves were complete within a time, by default a save's limit; ends this rank's threads."""
        deadline_s = time.monotonic() + (self._timeouts.save_s(()) if timeout_s is None else timeout_s)
        are_done = [writer.close(max(0.0, deadline_s - time.monotonic())) for writer in self._writers]
        if self._stager is not None:
            self._stager.close()
        return all(are_done)

    def wait(self, timeout_s: float) -> bool:
        """Return whether no save is under way on this rank, within a time."""
        deadline_s = time.monotonic() + timeout_s
        return all(writer.wait(0, max(0.0, deadline_s - time.monotonic())) for writer in self._writers)

    @property
    def _max_shared(self) -> int:
        """Saves that a shared storage may have under way: a buffer stays free for a node's own."""
        return NUM_BUFFERS - any(tier.is_per_node for tier in self._tiers)

    def _before_step(self, run: Run, step: int) -> None:
        if self._stager is None:
            self._begin(run)

    def _begin(self, run: Run) -> None:
        """Exchange what ranks hold, and make buffers and writers; raises UnavailableError where memory lacks."""
        comm, pieces = self._comm, run.pieces()
        own = [[span.weight, span.part, span.begin, span.end] for span in spans_of(pieces)]
        contents = comm.exchange_bytes(json.dumps([secrets.token_hex(8), own]).encode())
        attempts, tables = [], []
        for content in contents:
            attempt, table = json.loads(content)
            attempts.append(attempt)
            tables.append([Span(weight=name, part=part, begin=begin, end=end) for name, part, begin, end in table])
        views = _views(cut_ranges(pieces, tables, comm.rank), has_all=any(tier.is_per_node for tier in self._tiers))
        check_host_memory(
            data_bytes(view.entry for view in views), num_local_ranks=self._num_local_ranks, num_buffers=NUM_BUFFERS
        )
        writer = Writer(rank=comm.rank, num_ranks=len(contents), attempt=attempts[0], part_sizes=part_sizes(tables))
        self._stager = Stager(views, NUM_BUFFERS)
        self._writers = [
            TierWriter(
                tier,
                writer,
                FilePlan.of(views, has_all=tier.is_per_node),
                generation=self._generation,
                first_step=run.step,
                timeouts=self._timeouts,
                on_report=self._on_report,
            )
            for tier in self._tiers
        ]

    def _is_busy(self) -> bool:
        """Return whether a shared storage can take no other save now."""
        shared = [writer for writer in self._writers if not writer.tier.is_per_node]
        return self._when_busy == "skip" and any(writer.num_under_way >= self._max_shared for writer in shared)

    def _after_step(self, run: Run, report: StepReport) -> None:
        is_last = run.step == self._end_step
        if run.step % self._save_every == 0 or is_last:
            number = run.step // self._save_every
            due = [writer for writer in self._writers if is_last or number % writer.tier.every == 0]
            self._save(run, due, report.num_busy)

    def save(self, run: Run, timeout_s: float) -> None:
        """Save the state of now in every storage that lacks it, after earlier saves; every rank calls this."""
        if self._stager is None:
            self._begin(run)
        for writer in self._writers:
            writer.wait(0, timeout_s)
        missing = [writer for writer in self._writers if self._last_step.get(writer.tier.storage.url) != run.step]
        self._save(run, missing, 0)

    def _save(self, run: Run, due: Sequence[TierWriter], num_busy: int) -> None:
        began_ns, began_s = time.perf_counter_ns(), time.monotonic()
        save_id = CheckpointId(step=run.step, generation=self._generation)
        taking = [writer for writer in due if self._is_taking(writer, save_id, num_busy)]
        assert self._stager is not None, "made before the first step"
        if not taking:
            return
        head = run.head()
        staged = self._stager.stage()  # whose thread from here on competes for the interpreter
        staged.use(len(taking))
        self._current = Save(id=save_id, head=head, staged=staged, began_s=began_s)
        for writer in taking:
            self._last_step[writer.tier.storage.url] = run.step
            writer.put(self._current)
        self._current.blocked_ns += time.perf_counter_ns() - began_ns

    def _is_taking(self, writer: TierWriter, save_id: CheckpointId, num_busy: int) -> bool:
        """Return whether a storage takes a save; one that does not reports it as skipped."""
        if writer.tier.is_per_node:
            is_taking, cause = writer.wait(0, NODE_WAIT_S), f"the save before is not written after {NODE_WAIT_S:g} s"
        elif self._when_busy == "skip" and save_id.step != self._end_step:
            is_taking, cause = num_busy == 0, f"earlier saves are still under way on {num_busy} ranks"
        else:
            limit_s = self._timeouts.save_s(())
            is_taking = writer.wait(self._max_shared - 1, limit_s)
            cause = f"earlier saves are still under way after {limit_s:g} s"
        if not is_taking:
            writer.skip(save_id, cause)
        return is_taking

    def _before_update(self, run: Run) -> None:
        if self._stager is not None:
            waited_ns = self._stager.before_update()
            if self._current is not None:
                self._current.blocked_ns += waited_ns
                self._current = None


def _views(ranges: Sequence[Range], *, has_all: bool) -> list[View]:
    """Return the layout of a buffer: of all ranges, or of those that this rank writes."""
    return lay_out([span for span in ranges if has_all or span.is_own])
