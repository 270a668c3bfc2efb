"""Protocol of a store for an emulated rank: requests to send and parsers of replies.

An operation becomes requests that go out one after another, each when the reply to the one before is here. A request
knows how to take its reply from the bytes that have come in, once they are all there.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from fabrictune.collectives.startup.operation_count import OperationCount
from fabrictune.collectives.startup.store_operations import StoreOperation

StoreReply = str | int | bool | None
Taken = tuple[StoreReply, int]  # what the reply says, and the number of bytes it took
Taker = Callable[[bytes], Taken | None]  # None: more bytes must come


class StoreRequest(NamedTuple):
    """Bytes to send, and how to take the reply; no reply follows where there is no taker."""

    data: bytes
    take: Taker | None


class StoreProtocol(Protocol):
    """A store's protocol."""

    def greeting(self) -> tuple[StoreRequest, ...]:
        """Return what a new connection begins with."""

    def requests(self, operation: StoreOperation) -> tuple[StoreRequest, ...]:
        """Return an operation's requests; the reply of the last is the operation's."""

    def num_requests(self, count: OperationCount) -> int:
        """Return how many requests counted operations are."""
