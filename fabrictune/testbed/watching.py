"""Readings of a testbed's counters at a steady pace."""

import time
from collections.abc import Sequence

from fabrictune.foundation.progress import Progress
from fabrictune.testbed.counters import LinkReading, link_counters
from fabrictune.testbed.wiring import NamespaceFabric


def watch_links(
    built: NamespaceFabric, *, duration_s: float, interval_s: float, progress: Progress | None = None
) -> Sequence[LinkReading]:
    """Return readings over a duration, the first at once, the last at its end."""
    readings: list[LinkReading] = []
    with link_counters(built) as counters:
        started_s = time.monotonic()
        while (elapsed_s := time.monotonic() - started_s) < duration_s or len(readings) < 2:
            readings.append(counters.read())
            if progress:
                progress(min(elapsed_s / duration_s, 1.0))
            next_s = started_s + len(readings) * interval_s
            time.sleep(max(min(next_s, started_s + duration_s) - time.monotonic(), 0.0))
        readings.append(counters.read())
    return readings
