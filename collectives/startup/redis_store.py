"""A `torch.distributed.Store` on Redis, for any backend of torch.

Waits block in the server; keys carry the attempt's prefix and expire; see `redis_client.py` for restarts.

Source: torch's Store interface (2.4 and later), whose keys, waits and comparisons it keeps.
"""

import time
from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist

from fabrictune.collectives.startup.redis_client import RedisClient


class RedisStore(dist.Store):
    """The store of one attempt of one job.

    Raises torch's DistStoreError where a wait lasts beyond the timeout, StartupError where the server is lost or
    refuses. Values may be bytes or text; what is read is bytes.
    """

    timeout: timedelta  # torch's, which `set_timeout` changes

    def __init__(self, client: RedisClient) -> None:
        super().__init__()
        self.client = client
        self._copies: list[RedisStore] = []  # torch keeps its own half of a store alive, not this one
        self.set_timeout(timedelta(seconds=client.timeout_s))

    def set(self, key: str, value: str | bytes) -> None:
        """Write a value."""
        self.client.write(key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Wait for a key and return its value."""
        return self._read(key, time.monotonic() + self.timeout.total_seconds())

    def add(self, key: str, value: int) -> int:
        """Add to a counter and return the sum."""
        return self.client.add(key, value)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are there now."""
        return self.client.has(list(keys))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Write a value if the key holds the expected one; returns what it holds now."""
        return self.client.compare_set(key, _bytes(expected_value), _bytes(desired_value))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        deadline_s = time.monotonic() + (timeout or self.timeout).total_seconds()
        for key in keys:
            self._read(key, deadline_s)

    def append(self, key: str, value: str | bytes) -> None:
        """Write a value behind what the key holds."""
        self.client.append(key, _bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Wait for keys and return their values."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Write values, one after another."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Return that append, multi_get and multi_set are there."""
        return True

    def deleteKey(self, key: str) -> bool:
        """Remove a key; returns whether it was there. torch's `delete_key` calls it by this name."""
        return self.client.delete(key)

    def getNumKeys(self) -> int:
        """Return the number of keys. torch's `num_keys` calls it by this name."""
        return self.client.count()

    def clone(self) -> "RedisStore":
        """Return a store of the same keys over a connection of its own, so that one may wait while the other writes."""
        client = self.client
        copy = RedisStore(
            RedisClient(client.address, attempt=client.attempt, timeout_s=client.timeout_s, expiry_s=client.expiry_s)
        )
        self._copies.append(copy)
        return copy

    def _read(self, key: str, deadline_s: float) -> bytes:
        began_s = time.monotonic()
        value = self.client.read(key, max(0.0, deadline_s - began_s))
        if value is None:
            raise dist.DistStoreError(f"key {key!r} has not come after {time.monotonic() - began_s:.1f} s")
        return value


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
