"""Retries with ever longer pauses until a deadline. Only for reaching a server: waits for ranks never poll."""

import time
from collections.abc import Callable
from typing import TypeVar

FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0

Result = TypeVar("Result")


def retry(
    attempt: Callable[[float], Result], *, deadline_s: float, after: tuple[type[Exception], ...] = (OSError,)
) -> Result:
    """Return what `attempt(seconds left)` returns; raises its last error of the kinds `after` when the time is over.

    `deadline_s` is a moment of `time.monotonic`. There is one attempt at least.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return attempt(max(0.001, deadline_s - time.monotonic()))
        except after:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, LAST_PAUSE_S)
