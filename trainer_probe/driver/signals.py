"""Ctrl-C during a run: the first lets it end after its step, a second ends it at once."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType


@contextmanager
def telling_signals(tell: Callable[[], None], signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Call `tell` at the first of each of these signals while the block runs; a second has its usual effect."""
    before = {number: signal.getsignal(number) for number in signals}

    def on_first(number: int, frame: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        tell()

    for number in signals:
        signal.signal(number, on_first)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
