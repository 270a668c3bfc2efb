"""Store operations as data: protocols are generators of them, without socket or clock.

A protocol yields an operation and is sent its reply. So one text of it runs over a real store (`performing.py`), over
thousands of emulated connections (`storm/`), and in memory, where its operations are counted (`counting.py`). A wait
that lasts beyond the deadline is thrown into the protocol as `OverdueError`, so that it can find out why.

Values are short texts of ASCII characters.
"""

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar


class Set(NamedTuple):
    """Write a value; no reply."""

    key: str
    value: str


class CompareSet(NamedTuple):
    """Write `desired` if the key holds `expected` (an absent key: ""); the reply is what it holds now, a str."""

    key: str
    expected: str
    desired: str


class Add(NamedTuple):
    """Add to a counter, 0 if absent; the reply is the sum, an int."""

    key: str
    amount: int


class Get(NamedTuple):
    """Wait until a key is there; the reply is its value, a str."""

    key: str


class Wait(NamedTuple):
    """Wait until all keys are there; no reply."""

    keys: tuple[str, ...]


class CheckKey(NamedTuple):
    """Ask whether a key is there now; the reply is a bool."""

    key: str


class Pause(NamedTuple):
    """Do nothing for a while; asks nothing of the store. Only the polling barrier of earlier torch needs it."""

    seconds: float


StoreOperation = Set | CompareSet | Add | Get | Wait | CheckKey | Pause

Result = TypeVar("Result")
Steps = Generator[StoreOperation, Any, Result]


class OverdueError(Exception):
    """A wait lasted until the deadline."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"waited {waited_s:g} s")
        self.waited_s = waited_s
