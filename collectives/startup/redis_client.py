"""A connection to Redis that keeps deadlines, and survives a server that was restarted.

A client remembers what it wrote. The attempt's `epoch` key tells whether the server still holds it: where a client
comes back to another epoch, the server has lost its memory, and each client writes its own part again. All keys of the
meeting protocol have one writer, so the parts make a whole. A wait that was cut short is asked again, until its
deadline.

Only an addition whose reply was lost, on a server that has kept its memory, cannot be made good: it is an error.

Left out: Redis Cluster and Sentinel.
"""

import ssl
import time
import uuid
from collections.abc import Callable
from threading import Lock
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.retry import Retry

from collectives.startup.addresses import PASSWORD_VARIABLE, StoreAddress
from collectives.startup.redis_commands import (
    ADD,
    APPEND,
    COMPARE_SET,
    SCRIPTS,
    WRITE,
    WRITE_IF_ABSENT,
    Command,
    Script,
    await_value,
    awaited_value,
)
from foundation.errors import Mistake, StartupError

FIRST_RETRY_S = 0.05
LAST_RETRY_S = 1.0


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
        found: bytes = self._call(COMPARE_SET, key, expected, desired)
        if found == desired:
            self._written[key] = desired
        return found

    def read(self, key: str, timeout_s: float) -> bytes | None:
        """Wait for a key and return its value, or None if it has not come in time."""
        deadline_s = time.monotonic() + timeout_s
        name = self._name(key)
        return awaited_value(self._ask(lambda left_s: await_value(name, left_s), deadline_s=deadline_s, is_wait=True))

    def has(self, keys: list[str]) -> bool:
        """Return whether all keys are there now."""
        found: int = self._order(("EXISTS", *map(self._name, keys)))
        return found == len(keys)

    def delete(self, key: str) -> bool:
        """Remove a key; returns whether it was there."""
        self._written.pop(key, None)
        self._added.pop(key, None)
        return bool(self._order(("DEL", self._name(key))))

    def count(self) -> int:
        """Return the number of the attempt's keys, found by walking through all keys of the server."""
        pattern, cursor, found = f"{_escape(self.attempt)}/*", b"0", 0
        while True:
            cursor, names = self._order(("SCAN", cursor, "MATCH", pattern, "COUNT", 1000))
            found += sum(1 for name in names if name != self._name("epoch").encode())
            if cursor == b"0":
                return found

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
                    return _exchange(connection, command(left_s), left_s)
                except redis.TimeoutError as error:
                    self.close()
                    if is_wait:
                        return None
                    raise StartupError(self._mistake(f"has not answered for {self.timeout_s:g} s")) from error
                except redis.ResponseError as error:
                    raise StartupError(self._mistake(f"refuses ({error})")) from error
                except (redis.ConnectionError, OSError) as error:
                    self.close()
                    if not is_repeatable:
                        self._connect(deadline_s)
                        if self._epoch == epoch:
                            raise StartupError(
                                self._mistake("was lost during an addition, which may have been made or not")
                            ) from error

    def _connect(self, deadline_s: float) -> Connection:
        """Return the connection, made anew until the deadline if it is gone."""
        pause_s = FIRST_RETRY_S
        while self._connection is None:
            try:
                self._connection = self._open(max(0.001, deadline_s - time.monotonic()))
                self._greet(self._connection)
            except (redis.AuthenticationError, redis.ResponseError) as error:
                self.close()
                raise StartupError(self._refusal(error)) from error
            except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
                self.close()
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or _is_about_certificates(error):
                    is_silent = isinstance(error, redis.TimeoutError)
                    found = "does not answer" if is_silent else f"cannot be reached ({error})"
                    raise StartupError(self._mistake(found)) from error
                time.sleep(min(pause_s, left_s))
                pause_s = min(2 * pause_s, LAST_RETRY_S)
        return self._connection

    def _open(self, timeout_s: float) -> Connection:
        address = self.address
        settings: dict[str, Any] = {
            "host": address.host,
            "port": address.port,
            "db": address.database,
            "username": address.username,
            "password": address.password,
            "socket_timeout": self.timeout_s,
            "socket_connect_timeout": min(timeout_s, self.timeout_s),
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        if address.scheme == "redis":
            connection = Connection(**settings)
        else:
            connection = SSLConnection(
                ssl_ca_certs=address.ca_file,
                ssl_certfile=address.certificate_file,
                ssl_keyfile=address.key_file,
                **settings,
            )
        connection.connect()
        return connection

    def _greet(self, connection: Connection) -> None:
        """Make the scripts known, and write this client's part again if the server has lost it."""

        def call(script: Script, key: str, value: bytes | int) -> Any:
            return _exchange(connection, script.call(self._name(key), self._expiry_ms, value), self.timeout_s)

        for script in SCRIPTS:
            _exchange(connection, script.introduce(), self.timeout_s)
        ours = uuid.uuid4().hex.encode()
        call(WRITE_IF_ABSENT, "epoch", ours)
        reply = _exchange(connection, await_value(self._name("epoch"), self.timeout_s), self.timeout_s)
        epoch = (awaited_value(reply) or b"").decode()
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

    def _refusal(self, error: Exception) -> Mistake:
        """Describe a server that does not let this client in."""
        given = "the password given" if self.address.password else "a client without password"
        return Mistake(
            where=str(self.address),
            found=f"refuses {given} ({error})",
            next_step=f"set {PASSWORD_VARIABLE} to the server's password (requirepass, or the user's in its ACL)",
        )


def _exchange(connection: Connection, command: Command, timeout_s: float) -> Any:
    """Send one command and return its reply; raises redis.TimeoutError if none has begun in time."""
    connection.send_command(*command)
    if not connection.can_read(timeout=timeout_s):
        raise redis.TimeoutError
    return connection.read_response()


def _is_about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _escape(text: str) -> str:
    """Return text as SCAN matches it literally."""
    return "".join(f"\\{letter}" if letter in "*?[]^\\-" else letter for letter in text)
