"""The counters of all ports while something runs, read by a thread at a steady pace, and what they say of an interval.

Bytes at a moment lie on the line between the readings around it. How long packets waited for a port is the sum of the
times between readings that found some, half of it where only one of the two did. A port that packets wait for sends at
its rate, so a slower one is busy longer for the same bytes. Readings take at most a fifth of a processor.

Shapes: P ports, M readings.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.testbed.counters import LinkCounters, LinkReading, link_counters
from fabrictune.testbed.wiring import NamespaceFabric

MIN_PAUSE_S = 0.02
PAUSES_PER_READING = 4  # of the time that a reading takes
MAX_READINGS = 8192  # kept: the last few minutes


@dataclass(frozen=True, kw_only=True)
class PortUse:
    """What every port did in an interval."""

    sent_bytes_P: FloatArray
    busy_s_P: FloatArray  # how long packets waited for it
    num_readings: int


class PortWatch:
    """Readings of the ports of a testbed, which go on while it is watched."""

    def __init__(self, counters: LinkCounters) -> None:
        self._counters, self._lock = counters, Lock()
        self._readings: deque[LinkReading] = deque(maxlen=MAX_READINGS)
        self.first = self.read()

    def read(self) -> LinkReading:
        """Return the counters now, which are a reading like any other."""
        with self._lock:
            reading = self._counters.read()
            self._readings.append(reading)
        return reading

    def use_between(self, began_s: float, ended_s: float) -> PortUse:
        """Return what the ports did between two moments of CLOCK_MONOTONIC, of which the later has passed."""
        self.read()
        with self._lock:
            readings = [*self._readings]
        return port_use(readings, began_s, ended_s)

    def read_until(self, ended: Event) -> None:
        """Read at a steady pace until an event is set."""
        pause_s = 0.0
        while not ended.wait(pause_s):
            started_s = time.monotonic()
            self.read()
            pause_s = max(MIN_PAUSE_S, PAUSES_PER_READING * (time.monotonic() - started_s))


@contextmanager
def watched_ports(built: NamespaceFabric) -> Iterator[PortWatch]:
    """Give a watch of a testbed's ports, which reads them while the block runs."""
    with link_counters(built) as counters:
        watch, ended = PortWatch(counters), Event()
        thread = Thread(target=watch.read_until, args=(ended,), name="port-watch", daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            ended.set()
            thread.join()


def port_use(readings: Sequence[LinkReading], began_s: float, ended_s: float) -> PortUse:
    """Return what the ports did between two moments, by readings before, within and after; two or more."""
    at_s_M = np.array([reading.time_s_P.mean() for reading in readings])
    first = max(int(np.searchsorted(at_s_M, began_s, "right")) - 1, 0)
    last = max(min(int(np.searchsorted(at_s_M, ended_s)), len(readings) - 1), first + 1)
    near, at_s_M = readings[first : last + 1], at_s_M[first : last + 1]
    is_waiting_MP = np.array([reading.waiting_bytes_P > 0 for reading in near])
    clipped_s_M = np.clip(at_s_M, began_s, ended_s)
    half_s_M = np.diff(clipped_s_M)[:, None] / 2
    return PortUse(
        sent_bytes_P=_bytes_at(near, at_s_M, ended_s) - _bytes_at(near, at_s_M, began_s),
        busy_s_P=np.sum(half_s_M * is_waiting_MP[:-1] + half_s_M * is_waiting_MP[1:], axis=0),
        num_readings=int(np.sum((at_s_M >= began_s) & (at_s_M <= ended_s))),
    )


def _bytes_at(readings: Sequence[LinkReading], at_s_M: FloatArray, moment_s: float) -> FloatArray:
    """Return the bytes that the ports had sent at a moment; outside of all readings, those of the nearest."""
    after = min(max(int(np.searchsorted(at_s_M, moment_s)), 1), len(readings) - 1)
    earlier, later = readings[after - 1], readings[after]
    part = np.clip((moment_s - at_s_M[after - 1]) / (at_s_M[after] - at_s_M[after - 1]), 0.0, 1.0)
    return np.asarray(earlier.sent_bytes_P + part * (later.sent_bytes_P - earlier.sent_bytes_P))
