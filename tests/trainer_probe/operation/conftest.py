"""A listener and peers of the operation's tests."""

import secrets
from collections.abc import Iterator

import pytest

from fabrictune.trainer_probe.operation.messages import Listener, listen


@pytest.fixture
def key() -> bytes:
    """A shared key."""
    return secrets.token_bytes(32)


@pytest.fixture
def listener(key: bytes) -> Iterator[Listener]:
    """A listener on a free port of the loopback device."""
    with listen("127.0.0.1", 0, key) as found:
        yield found
