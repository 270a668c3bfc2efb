"""Messages from a rank to the process that started it, while it runs."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from threading import Thread
from typing import TypeVar

Message = TypeVar("Message")


@contextmanager
def relay(on_message: Callable[[Message], None]) -> Iterator["Connection[Message, Message]"]:
    """Yield a connection through which other processes send messages to `on_message` while the block runs."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def receive() -> None:
        try:
            while True:
                on_message(receiver.recv())
        except EOFError:
            receiver.close()

    thread = Thread(target=receive, name="relay", daemon=True)
    thread.start()
    try:
        yield sender
    finally:
        sender.close()
        thread.join()
