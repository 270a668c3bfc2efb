"""A job's journal in a Redis server: a list of events, and a hash of their origins.

A script adds to both at once. Every event has an origin, its sender's or one of this process, so that one whose answer
was lost can be sent again without being recorded twice; while the server is away, appends wait for it.

The server decides how durable an event is: with `appendonly yes` and `appendfsync always` it is on the server's disk
before `append` returns. `durability` says what the server does, and a weaker one gives a warning.

Source: redis.io, commands EVAL, RPUSH, HSET; persistence.
Left out: Redis Cluster and Sentinel.
"""

import json
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import environ
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from fabrictune.collectives.startup.addresses import PASSWORD_VARIABLE, StoreAddress
from fabrictune.collectives.startup.retry import retry
from fabrictune.foundation.errors import FabrictuneWarning, InputError, Mistake, StartupError, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.journal_entries import Origin, decode_event, encode_values

if TYPE_CHECKING:
    from redis.connection import Connection

DURABLE = "on disk at each append"
PATIENCE_S = 60.0  # for a server that is away
_ANSWER_S = 10.0
_PAGE_EVENTS = 100
_PREFIX = "fabrictune:journal:"
_APPEND = """
local first = redis.call('HGET', KEYS[2], ARGV[2])
if first then return tonumber(first) end
local number = redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[2], number)
return number
"""


def open_redis_journal(url: str) -> "RedisJournal":
    """Return the journal `redis://[user@]host:port/database?name=JOB`; the password comes from the environment.

    Raises InputError for an address that is none or has a password in it, StartupError for a server that cannot be
    used, and warns of one that keeps events less than durably.
    """
    address = StoreAddress.parse(url, where="journal")
    if address.scheme == "tcp":
        raise InputError(
            Mistake(where="journal", found="a TCPStore, which keeps nothing", allowed="a folder, or redis://...")
        )
    (name, *_) = parse_qs(urlsplit(url).query).get("name", ["job"])
    try:
        import redis  # noqa: F401
    except ImportError as error:
        raise UnavailableError(
            Mistake(where="journal", found="redis is not installed", next_step="pip install 'fabrictune[redis]'")
        ) from error
    journal = RedisJournal(replace(address, password=environ.get(PASSWORD_VARIABLE) or None), name)
    if journal.durability != DURABLE:
        warnings.warn(
            f"{address}: keeps events {journal.durability}; what it has not written when its host fails is lost",
            FabrictuneWarning,
            stacklevel=3,
        )
    return journal


class RedisJournal:
    """A journal in a Redis server; any thread may use it."""

    def __init__(self, address: StoreAddress, name: str) -> None:
        self._address = address
        self._events, self._origins = f"{_PREFIX}{name}:events", f"{_PREFIX}{name}:origins"
        self._sender, self._num_sent = uuid.uuid4().hex, 0
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self.durability = self._durability()

    def append(self, kind: str, values: Mapping[str, Any], *, elapsed_s: float, origin: Origin | None = None) -> int:
        """Record an event and return its number, once the server has it; that of the first where the origin repeats.

        Raises StartupError where the server stays away or refuses.
        """
        entry = json.dumps([elapsed_s, time.time_ns(), kind, encode_values(values)])
        with self._lock:
            if origin is None:
                origin = self._sender, self._num_sent
                self._num_sent += 1
            text = f"{origin[0]} {origin[1]}"
            number: int = self._ask("EVAL", _APPEND, 2, self._events, self._origins, entry, text)
        return number

    def read(self, after: int = 0) -> Iterator[Event]:
        """Return the events with higher numbers than `after`, in order; raises RecordError where one is damaged."""
        while True:
            with self._lock:
                entries: list[bytes] = self._ask("LRANGE", self._events, after, after + _PAGE_EVENTS - 1)
            if not entries:
                return
            for number, entry in enumerate(entries, after + 1):
                yield decode_event(number, *_fields(entry), where=str(self._address))
            after += len(entries)

    def close(self) -> None:
        """End the use of the journal."""
        with self._lock:
            self._disconnect()

    def _durability(self) -> str:
        """Return what the server does with an event before it answers."""
        import redis

        try:
            with self._lock:
                found = self._ask("CONFIG", "GET", "append*")
        except StartupError as error:
            if isinstance(error.__cause__, redis.ResponseError):  # this user may not ask
                return "as its operator has set, which it does not tell"
            raise
        settings = {
            bytes(name).decode(): bytes(value).decode() for name, value in zip(found[::2], found[1::2], strict=True)
        }
        if settings.get("appendonly") != "yes":
            return "in memory"
        return DURABLE if settings.get("appendfsync") == "always" else "on disk a second later"

    def _ask(self, *command: str | int) -> Any:
        """Return the answer to a command, asked again until the server is back or the patience ends."""
        import redis

        from fabrictune.collectives.startup.redis_connection import LOST

        def attempt(left_s: float) -> Any:
            try:
                return self._exchange(command, min(left_s, _ANSWER_S))
            except LOST:
                self._disconnect()
                raise

        try:
            return retry(attempt, deadline_s=time.monotonic() + scaled(PATIENCE_S), after=LOST)
        except redis.ResponseError as error:
            raise StartupError(Mistake(where=str(self._address), found=f"refuses ({error})")) from error
        except LOST as error:
            found = f"cannot be reached ({error})"
            next_step = "start the server again, with the data that it had"
            raise StartupError(Mistake(where=str(self._address), found=found, next_step=next_step)) from error

    def _exchange(self, command: tuple[str | int, ...], timeout_s: float) -> Any:
        import redis

        from fabrictune.collectives.startup.redis_connection import open_connection

        if self._connection is None:
            self._connection = open_connection(self._address, timeout_s)
        self._connection.send_command(*command)
        if not self._connection.can_read(timeout=timeout_s):
            raise redis.TimeoutError("has not answered")
        return self._connection.read_response()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None


def _fields(entry: bytes) -> tuple[Any, Any, Any, Any]:
    """Return an entry's elapsed time, time, kind and body; four times nothing where it is damaged."""
    try:
        elapsed_s, time_ns, kind, body = json.loads(entry)
    except (ValueError, TypeError, RecursionError):
        return None, None, None, None
    return elapsed_s, time_ns, kind, body
