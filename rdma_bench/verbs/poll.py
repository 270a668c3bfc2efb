"""Polling of a device: one loop that polls, rests, and ends at its limit."""

import time
from collections.abc import Callable, Iterator

from fabrictune.foundation.units import NS_PER_S

PAUSE_S = 0.0002
LOOK_EVERY = 256  # rounds between two looks whether anybody still wants the answer

IsAbandoned = Callable[[], bool]


def polling(limit_s: float, is_abandoned: IsAbandoned, *, pause_s: float = PAUSE_S) -> Iterator[int]:
    """Yield the monotonic time in ns again and again, until the limit is over or the answer is no longer needed."""
    end_ns = time.monotonic_ns() + round(limit_s * NS_PER_S)
    rounds = 0
    while (now_ns := time.monotonic_ns()) < end_ns:
        yield now_ns
        rounds += 1
        if rounds % LOOK_EVERY == 0 and is_abandoned():
            return
        if pause_s:
            time.sleep(pause_s)
