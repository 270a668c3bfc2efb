"""Recorder of a rank's spans: it takes part in a run as a hook, and writes each step when the next one ends.

By then all that was queued to a GPU has been reached, so that reading its events waits for nothing. Passes, updates and
steps are timed by the clock of the rank's work, as requests are; what blocks the host (loader, checkpoint, garbage
collection) by the machine's own. Requests cost nothing here while they are made: they are in the ledger anyway.

Left out: the last step of a rank that is killed.
"""

import os
import re
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fabrictune.foundation.span_lines import SpanHeader, pass_line, request_text, tag_text, work_line
from fabrictune.foundation.span_writer import SpanLimits, SpanWriter
from fabrictune.foundation.spans import SpanKind
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.trainer_probe.ledger import Entry
from fabrictune.trainer_probe.spans.garbage import watched_collections
from fabrictune.trainer_probe.spans.passes import TimedPass, TimedPasses
from fabrictune.trainer_probe.training.hooks import Hook, Run

if TYPE_CHECKING:
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.parallel.passes import Passes
    from fabrictune.trainer_probe.training.progress import StepReport

MIN_NS = 20_000  # of host work that is a span
_STAGE = re.compile(r"stage(\d+)(?:\.batch(\d+))?")
P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def recording(comm: "Comm", folder: Path, limits: SpanLimits | None = None) -> Iterator["SpanRecorder"]:
    """Yield the recorder of a run's rank, which sees collections of garbage too; its files are closed at the end."""
    recorder = SpanRecorder(comm, folder, limits)
    with watched_collections(partial(recorder.add, SpanKind.GARBAGE_COLLECTION)):
        try:
            yield recorder
        finally:
            recorder.close()


class SpanRecorder:
    """The spans of one rank, from `begin` to `close`."""

    def __init__(self, comm: "Comm", folder: Path, limits: SpanLimits | None = None) -> None:
        self._comm, self._folder, self._limits = comm, folder, limits
        self._writer: SpanWriter | None = None
        self._step = _Step(number=-1)
        self._ended: _Step | None = None  # written when the next step ends
        self._num_stages = 0
        self._sequences = Counter[tuple[int, int, int]]()
        self._tags: dict[str, str] = {}  # the end of a request's line

    @property
    def failure(self) -> str | None:
        """Why the spans have ended, if they have."""
        return None if self._writer is None else self._writer.failure

    def begin(self) -> None:
        """Open the files, once the ranks have compared their clocks."""
        clock = self._comm.clock
        header = SpanHeader(
            rank=self._comm.rank,
            layout=self._comm.layout,
            host=socket.gethostname(),
            pid=os.getpid(),
            clock_offset_ns=clock.offset_ns,
            clock_error_ns=clock.error_ns,
        )
        self._writer = SpanWriter(self._folder, header, self._limits)

    def close(self) -> None:
        """Write what is left, and close the files."""
        if self._ended is not None:
            self._write(self._ended)
            self._ended = None
        if self._writer is not None:
            self._writer.close()

    def timed(self, kind: SpanKind, call: Callable[P, T]) -> Callable[P, T]:
        """Return a function whose calls are spans of host time."""

        def timed_call(*args: P.args, **kwargs: P.kwargs) -> T:
            began_ns = time.perf_counter_ns()
            try:
                return call(*args, **kwargs)
            finally:
                self.add(kind, began_ns, time.perf_counter_ns())

        return timed_call

    def add(self, kind: SpanKind, began_ns: int, ended_ns: int) -> None:
        """Record what took this time by the machine's clock, if it took any."""
        if ended_ns - began_ns >= MIN_NS:
            self._step.host_work.append((kind, began_ns, ended_ns))

    def around(self, hooks: Iterable[Hook]) -> tuple[Hook, ...]:
        """Return a run's hooks with the recorder's own around them, and with spans where a hook says of which kind."""
        first = Hook(before_step=self._begin_step, after_update=self._end_update)
        last = Hook(before_update=self._begin_update, after_step=self._end_step, passes_of=self._passes_of)
        return first, *map(self._timed_hook, hooks), last

    def _timed_hook(self, hook: Hook) -> Hook:
        if hook.span is None:
            return hook
        timed = partial(self._timed_call, hook.span)
        return replace(
            hook,
            before_step=timed(hook.before_step),
            after_step=timed(hook.after_step),
            before_update=timed(hook.before_update),
            after_update=timed(hook.after_update),
        )

    def _timed_call(self, kind: SpanKind, call: Callable[P, None] | None) -> Callable[P, None] | None:
        return None if call is None else self.timed(kind, call)

    def _begin_step(self, run: Run, step: int) -> None:
        self._step.number = step
        self._step.began = self._comm.clock_reading()

    def _end_step(self, run: Run, report: "StepReport") -> None:
        ended, self._step = self._step, _Step(number=self._step.number + 1)
        ended.ended = self._comm.clock_reading()
        ended.requests = self._comm.take_requests()
        before, self._ended = self._ended, ended
        if before is not None:
            self._write(before)

    def _begin_update(self, run: Run) -> None:
        self._step.update_began = self._comm.clock_reading()

    def _end_update(self, run: Run) -> None:
        self._step.update_ended = self._comm.clock_reading()

    def _passes_of(self, passes: "Passes") -> "Passes":
        self._num_stages += 1
        return TimedPasses(passes, self._num_stages - 1, self._comm.clock_reading, lambda: self._step.passes)

    def _write(self, step: "_Step") -> None:
        if self._writer is None:
            return
        ns, number = self._comm.since_origin_ns, step.number
        lines = [work_line(SpanKind.STEP, number, ns(step.began), ns(step.ended))]
        if step.update_ended is not None:
            lines.append(work_line(SpanKind.OPTIMIZER, number, ns(step.update_began), ns(step.update_ended)))
        origin_ns = self._comm.origin_ns
        lines += [work_line(kind, number, begin - origin_ns, end - origin_ns) for kind, begin, end in step.host_work]
        lines += [
            pass_line(timed.kind, number, ns(timed.began), ns(timed.ended), timed.micro_batch, timed.chunk)
            for timed in step.passes
        ]
        lines += [self._request_line(entry) for entry in step.requests]
        self._writer.write(number, "".join(lines))

    def _request_line(self, entry: Entry[Any]) -> str:
        request, ns = entry.request, self._comm.since_origin_ns
        is_message = request.operation in (Operation.SEND, Operation.RECEIVE)
        key = (request.group, request.operation, request.peer) if is_message else (request.group, UNKNOWN, UNKNOWN)
        sequence = self._sequences[key]
        self._sequences[key] = sequence + 1
        start_ns = UNKNOWN if entry.waited_since is None else ns(entry.waited_since)
        end_ns = UNKNOWN if entry.completed is None else ns(entry.completed)
        end = self._tags.get(request.tag) or self._tag(request.tag)
        return request_text(
            request.step,
            ns(entry.issued),
            start_ns,
            end_ns,
            f"{request.operation:d},{request.group},{sequence},{request.peer},{request.num_bytes},{end}",
        )

    def _tag(self, tag: str) -> str:
        """Return the end of the line of requests with this tag; a run has few."""
        match = _STAGE.match(tag)
        stage, batch = match.groups() if match else (None, None)
        chunk = UNKNOWN if stage is None else int(stage) // self._comm.layout.pp
        end = self._tags[tag] = tag_text(UNKNOWN if batch is None else int(batch), chunk, tag)
        return end


class _Step:
    """What a step's spans are made of: readings of the clock, and requests."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.began: Any = None
        self.ended: Any = None
        self.update_began: Any = None
        self.update_ended: Any = None
        self.host_work: deque[tuple[SpanKind, int, int]] = deque()
        self.passes: list[TimedPass] = []
        self.requests: Sequence[Entry[Any]] = ()
