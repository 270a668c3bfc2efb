"""A connection to Redis that keeps deadlines, and survives a server that was restarted.

A client remembers what it wrote. The attempt's `epoch` key shows whether the server still holds it: where a client
finds another epoch, the server has lost its memory, and each client writes its own part again. All keys of the
rendezvous protocol have one writer, so the parts make a whole. A wait that was cut short is asked again, until its
deadline.

Only an addition whose reply was lost, on a server that has kept its memory, cannot be made good: it is an error.

Left out: Redis Cluster and Sentinel.
"""

import time
import uuid
from collections.abc import Callable
from threading import Lock
from typing import Any

import redis
from redis.connection import Connection

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.redis_commands import (
    ADD,
    APPEND,
    COMPARE_SET,
    EPOCH,
    WRITE,
    WRITE_IF_ABSENT,
    Command,
    Script,
    await_value,
    awaited_value,
)
from fabrictune.collectives.startup.redis_connection import LOST, exchange, not_let_in, open_connection
from fabrictune.collectives.startup.retry import retry
from fabrictune.foundation.errors import Mistake, StartupError


class RedisClient:
    """The operations of a store, on the keys of one attempt. One operation at a time, from any thread.

    Raises StartupError where the server cannot be reached in time, refuses, or breaks its word.
    """

    def __init__(self, address: StoreAddress, *, attempt: str, timeout_s: float, expiry_s: float) -> None:
        self.address = address
        self.attempt = attempt
        self.timeout_s = timeout_s
        self.expiry_s = expiry_s
        self._expiry_ms = round(expiry_s * 1000)
        self._connection: Connection | None = None
        self._lock = Lock()
        self._epoch = ""
        self._written: dict[str, bytes] = {}
        self._added: dict[str, int] = {}

    def connect(self) -> None:
        """Reach the server now, so that one that cannot be used is known at once."""
        with self._lock:
            self._connect(time.monotonic() + self.timeout_s)

    def write(self, key: str, value: bytes) -> None:
        """Write a value."""
        self._call(WRITE, key, value)
        self._written[key] = value

    def append(self, key: str, value: bytes) -> None:
        """Write a value behind what the key holds."""
        self._call(APPEND, key, value, is_repeatable=False)

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, 0 if absent; returns the sum."""
        total = int(self._call(ADD, key, amount, is_repeatable=False))
        self._added[key] = self._added.get(key, 0) + amount
        return total

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        """Write `desired` if the key holds `expected` (an absent key: nothing); returns what it holds now."""
        value: bytes = self._call(COMPARE_SET, key, expected, desired)
        if value == desired:
            self._written[key] = desired
        return value

    def read(self, key: str, timeout_s: float) -> bytes | None:
        """Wait for a key and return its value, or None if it has not come in time."""
        deadline_s = time.monotonic() + timeout_s
        name = self._name(key)
        return awaited_value(self._ask(lambda left_s: await_value(name, left_s), deadline_s=deadline_s, is_wait=True))

    def has(self, keys: list[str]) -> bool:
        """Return whether all keys are there now."""
        num_keys: int = self._order(("EXISTS", *map(self._name, keys)))
        return num_keys == len(keys)

    def delete(self, key: str) -> bool:
        """Remove a key; returns whether it was there."""
        self._written.pop(key, None)
        self._added.pop(key, None)
        return bool(self._order(("DEL", self._name(key))))

    def count(self) -> int:
        """Return the number of the attempt's keys, found by walking through all keys of the server."""
        pattern, cursor, num_keys = f"{_escape(self.attempt)}/*", b"0", 0
        while True:
            cursor, names = self._order(("SCAN", cursor, "MATCH", pattern, "COUNT", 1000))
            num_keys += sum(1 for name in names if name != self._name(EPOCH).encode())
            if cursor == b"0":
                return num_keys

    def close(self) -> None:
        """Leave the server; the next operation connects again."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None

    def _name(self, key: str) -> str:
        return f"{self.attempt}/{key}"

    def _call(self, script: Script, key: str, *arguments: bytes | int, is_repeatable: bool = True) -> Any:
        return self._order(script.call(self._name(key), self._expiry_ms, *arguments), is_repeatable=is_repeatable)

    def _order(self, command: Command, *, is_repeatable: bool = True) -> Any:
        deadline_s = time.monotonic() + self.timeout_s
        return self._ask(lambda _: command, deadline_s=deadline_s, is_repeatable=is_repeatable)

    def _ask(
        self,
        command: Callable[[float], Command],
        *,
        deadline_s: float,
        is_wait: bool = False,
        is_repeatable: bool = True,
    ) -> Any:
        """Return the reply to a command, made anew from the time left whenever the connection is."""
        with self._lock:
            while True:
                connection, epoch = self._connect(deadline_s), self._epoch
                left_s = max(0.0, deadline_s - time.monotonic())
                try:
                    return exchange(connection, command(left_s), left_s)
                except redis.TimeoutError as error:
                    self.close()
                    if is_wait:
                        return None
                    raise StartupError(self._mistake(f"has not answered for {self.timeout_s:g} s")) from error
                except redis.ResponseError as error:
                    raise StartupError(self._mistake(f"refuses ({error})")) from error
                except LOST as error:
                    self.close()
                    if not is_repeatable:
                        self._connect(deadline_s)
                        if self._epoch == epoch:
                            raise StartupError(
                                self._mistake("was lost during an addition, which may have been made or not")
                            ) from error

    def _connect(self, deadline_s: float) -> Connection:
        """Return the connection, made anew until the deadline if it is gone."""
        if self._connection is None:
            try:
                self._connection = retry(self._open, deadline_s=deadline_s, after=LOST)
            except redis.ResponseError as error:
                raise StartupError(self._mistake(f"refuses ({error})")) from error
            except redis.TimeoutError as error:
                raise StartupError(self._mistake("does not answer")) from error
            except LOST as error:
                raise StartupError(self._mistake(f"cannot be reached ({error})")) from error
        return self._connection

    def _open(self, left_s: float) -> Connection:
        connection = open_connection(self.address, min(left_s, self.timeout_s))
        try:
            self._greet(connection)
        except redis.RedisError as error:
            connection.disconnect()
            if isinstance(error, redis.AuthenticationError):  # the server now requires a password
                raise StartupError(not_let_in(self.address, error)) from error
            raise
        return connection

    def _greet(self, connection: Connection) -> None:
        """Write this client's part again if the server has lost it."""

        def call(script: Script, key: str, value: bytes | int) -> Any:
            return exchange(connection, script.call(self._name(key), self._expiry_ms, value), self.timeout_s)

        epoch = call(WRITE_IF_ABSENT, EPOCH, uuid.uuid4().hex.encode()).decode()
        if self._epoch not in ("", epoch):
            for key, value in self._written.items():
                call(WRITE_IF_ABSENT, key, value)
            for key, amount in self._added.items():
                call(ADD, key, amount)
        self._epoch = epoch

    def _mistake(self, found: str) -> Mistake:
        return Mistake(
            where=str(self.address), found=found, next_step="start the server, or correct its address; then try again"
        )


def _escape(text: str) -> str:
    """Return text as SCAN matches it literally."""
    return "".join(f"\\{letter}" if letter in "*?[]^\\-" else letter for letter in text)
