"""The clock of a GPU's work: events in the stream to which a rank queues it.

A call on a GPU returns when its work is queued, so the host's time of a wait is near zero. An event is reached when all
that was queued before it is done: two of them around a wait are as far apart as the stream stands still, which is what
the wait costs the step.

An event knows its distance to another one only, in single precision: each reading counts from a base, an event whose
moment by the machine's clock is known. It is renewed where a reading is asked for, since that waits for the stream.

Source: CUDA Runtime API, event management: a resolution of about 0.5 us.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import torch

from fabrictune.foundation.units import NS_PER_MS

_MAX_READINGS = 10_000  # of one base: seconds of a step, in single precision a microsecond


class StreamEvent(Protocol):
    """What the clock needs of `torch.cuda.Event`."""

    def record(self) -> None:
        """Queue the event."""
        ...

    def synchronize(self) -> None:
        """Return when the event is reached."""
        ...

    def elapsed_time(self, end_event: Self, /) -> float:
        """Return the time from this event to another in ms."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Base:
    event: StreamEvent
    ns: int  # of the machine's clock, when the event was reached


@dataclass(frozen=True, kw_only=True)
class StreamReading:
    """The moment at which a stream reaches an event."""

    event: StreamEvent
    base: _Base


class StreamClock:
    """The clock of the current stream of a GPU (`trainer_probe/clocks.py`)."""

    def __init__(
        self, make_event: Callable[[], StreamEvent], read_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._make_event, self._read_ns = make_event, read_ns
        self._renew_base()

    def read(self) -> StreamReading:
        """Queue an event."""
        self._num_readings += 1
        return StreamReading(event=self._queued_event(), base=self._base)

    def ns(self, reading: StreamReading) -> int:
        """Return a reading by the machine's clock, once the stream has reached it."""
        reading.event.synchronize()
        if self._num_readings > _MAX_READINGS:
            self._renew_base()
        return reading.base.ns + round(reading.base.event.elapsed_time(reading.event) * NS_PER_MS)

    def _renew_base(self) -> None:
        event = self._queued_event()
        event.synchronize()
        self._base, self._num_readings = _Base(event=event, ns=self._read_ns()), 0

    def _queued_event(self) -> StreamEvent:
        event = self._make_event()
        event.record()
        return event


def cuda_event() -> StreamEvent:
    """Return an event for the current stream of the thread that queues it."""
    event: StreamEvent = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    return event
