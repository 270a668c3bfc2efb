"""What a rank says while it runs, passed on in the process that started it."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Thread
from typing import TypeVar

Message = TypeVar("Message")


@contextmanager
def relaying(take: Callable[[Message], None]) -> Iterator["Connection[Message, Message]"]:
    """Give a connection on which another process sends messages to `take`, for as long as the block runs."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def relay() -> None:
        try:
            while True:
                take(receiver.recv())
        except EOFError:
            receiver.close()

    thread = Thread(target=relay, name="relay", daemon=True)
    thread.start()
    try:
        yield sender
    finally:
        sender.close()
        thread.join()
