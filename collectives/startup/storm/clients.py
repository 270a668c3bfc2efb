"""Emulated ranks: one connection each, all in one event loop, speaking a store's real protocol.

An emulated rank does what its protocol says and nothing else: no training, no GPU, no torch. So a storm shows what
the store and the order of asking cost, and a machine can be thousands of ranks.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.store_operations import Pause, Steps
from fabrictune.collectives.startup.storm.wires import StoreProtocol, StoreReply, StoreRequest, Taker

CONNECTING_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Effort of all emulated ranks together."""

    num_requests: int
    wall_s: float
    cpu_s: float  # of this process


class EmulatedRank(asyncio.Protocol):
    """One connection, and the protocol that runs over it."""

    def __init__(self, wire: StoreProtocol) -> None:
        self.num_requests = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wire = wire
        self._requests: deque[StoreRequest] = deque()
        self._take: Taker | None = None
        self._received = b""
        self._steps: Steps[None] | None = None
        self._reply: StoreReply = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the server."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._requests.extend(self._wire.greeting())
        self._advance()

    def data_received(self, data: bytes) -> None:
        """Take the reply if all of it is here, and go on."""
        self._received += data
        assert self._take is not None, "the server speaks unasked"
        try:
            taken = self._take(self._received)
            if taken is not None:
                self._reply, num_bytes = taken
                self._received = self._received[num_bytes:]
                self._take = None
                self._advance()
        except Exception as error:
            self._end(error)

    def connection_lost(self, error: Exception | None) -> None:
        """End the wait for this rank with an error."""
        self._end(error or ConnectionError("the server has closed the connection"))

    def begin(self, steps: Steps[None]) -> None:
        """Run a protocol; `done` is set when it has ended."""
        self.num_requests = 0
        self.done = asyncio.get_running_loop().create_future()
        self._steps = steps
        self._reply = None
        self._advance()

    def close(self) -> None:
        """Leave the server."""
        self._transport.close()

    def _advance(self) -> None:
        """Send requests until one has a reply to wait for, or all is done."""
        while True:
            while self._requests:
                request = self._requests.popleft()
                self._transport.write(request.data)
                self.num_requests += 1
                if request.take is not None:
                    self._take = request.take
                    return
            if not self._next_operation():
                return

    def _next_operation(self) -> bool:
        """Make the next operation's requests; returns whether there are any to be sent now."""
        if self._steps is None:
            self._end(None)
            return False
        try:
            operation = self._steps.send(self._reply)
        except StopIteration:
            self._end(None)
            return False
        self._reply = None
        if isinstance(operation, Pause):
            asyncio.get_running_loop().call_later(operation.seconds, self._advance)
            return False
        self._requests.extend(self._wire.requests(operation))
        return True

    def _end(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)
            self.close()


@asynccontextmanager
async def connected(address: StoreAddress, wire: StoreProtocol, number: int) -> AsyncIterator[list[EmulatedRank]]:
    """Give emulated ranks that the server has greeted, until they leave; raises OSError where it will not have them."""
    loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(CONNECTING_AT_ONCE)
    ranks: list[EmulatedRank] = []

    async def connect() -> None:
        async with slots:
            _, rank = await loop.create_connection(lambda: EmulatedRank(wire), address.host, address.port)
            ranks.append(rank)
            await rank.done

    try:
        await asyncio.gather(*(connect() for _ in range(number)))
        yield ranks
    finally:
        for rank in ranks:
            rank.close()


async def run_storm(ranks: Sequence[EmulatedRank], protocols: Iterable[Steps[None]], timeout_s: float) -> Effort:
    """Let all ranks begin at once, and wait for the last; raises TimeoutError, and OSError where one is cut off."""
    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    for rank, steps in zip(ranks, protocols, strict=True):
        rank.begin(steps)
    async with asyncio.timeout(timeout_s):
        await asyncio.gather(*(rank.done for rank in ranks))
    return Effort(
        num_requests=sum(rank.num_requests for rank in ranks),
        wall_s=time.perf_counter() - started_s,
        cpu_s=time.process_time() - started_cpu_s,
    )
