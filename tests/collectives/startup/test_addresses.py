"""Addresses of stores, and what is wrong with them."""

import pytest

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.foundation.errors import InputError


def test_addresses_of_all_kinds() -> None:
    """Redis has a usual port; a TCPStore has none."""
    assert StoreAddress.parse("tcp://node1:29500") == StoreAddress(scheme="tcp", host="node1", port=29500)
    assert StoreAddress.parse("redis://node1") == StoreAddress(scheme="redis", host="node1", port=6379)
    assert StoreAddress.parse("rediss://job@[::1]:7000/3") == StoreAddress(
        scheme="rediss", host="::1", port=7000, database=3, username="job"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://node1", "store: unknown kind of store 'http'\n  allowed: tcp, redis, rediss"),
        (
            "reddis://node1",
            "store: unknown kind of store 'reddis'\n  did you mean 'redis'?\n  allowed: tcp, redis, rediss",
        ),
        ("redis://:secret@node1", "store: an address with a password in it\n  next: take it out, and set FABRICTUNE"),
        ("tcp://node1", "store: 'tcp://node1'\n  allowed: tcp://host:port, redis://host:port/database, rediss://"),
        ("redis://node1:70000", "store: 'redis://node1:70000'\n  allowed: tcp://host:port"),
        ("redis://node1/first", "store: 'redis://node1/first'\n  allowed: tcp://host:port"),
        ("redis://[node1", "store: 'redis://[node1'\n  allowed: tcp://host:port"),
    ],
)
def test_an_address_that_is_none_is_told(text: str, message: str) -> None:
    """What was found and what is allowed; never the password."""
    with pytest.raises(InputError) as error:
        StoreAddress.parse(text)
    assert str(error.value).startswith(message)
    assert "secret" not in str(error.value)
