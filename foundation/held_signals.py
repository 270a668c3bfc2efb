"""Signals that stop a program, held back while it must not stop half way: between making a folder and removing it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldSignals:
    """A block in which what the program does at Ctrl-C, SIGTERM and SIGHUP waits for the block's end.

    Signals that the program ignores, or leaves to the system, stay as they are. In threads other than the main one,
    which no signal interrupts, it does nothing.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._held: list[int] = []

    def __enter__(self) -> Self:
        """Hold signals back."""
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._hold)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the first signal that was held take its effect."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        handlers, self._handlers = self._handlers, {}
        if self._held:
            number = self._held[0]
            self._held.clear()
            handlers[number](number, None)

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Hold nothing back in a block within this one; what was held takes effect at its beginning."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def _hold(self, number: int, _: FrameType | None) -> None:
        self._held.append(number)
