"""The store on Redis behaves as torch's own does, and waits without asking twice."""

import socket
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.servers import Server
from fabrictune.collectives.startup.stores import connect_store
from tests.patience import patience

if TYPE_CHECKING:
    from fabrictune.collectives.startup.redis_client import RedisClient

dist = pytest.importorskip("torch.distributed")
redis_client = pytest.importorskip("fabrictune.collectives.startup.redis_client")
redis_store = pytest.importorskip("fabrictune.collectives.startup.redis_store")


def test_a_store_does_what_torch_expects(any_server: Server) -> None:
    """The same calls on TCPStore and Redis: values, counters, comparisons, deletion."""
    store = connect_store(any_server.address, attempt="semantics", timeout_s=patience(10))
    store.set("value", "one")
    store.set("value", "two")
    assert store.get("value") == b"two"
    assert (store.add("counter", 3), store.add("counter", -5)) == (3, -2)
    assert store.get("counter") == b"-2"
    store.set("number", "40")
    assert store.add("number", 2) == 42
    assert store.compare_set("absent", "something", "new") == b"something"
    assert not store.check(["absent"])
    assert store.compare_set("claim", "", "mine") == b"mine"
    assert store.compare_set("claim", "", "yours") == b"mine"
    assert store.compare_set("claim", "mine", "yours") == b"yours"
    assert store.multi_get(["value", "claim"]) == [b"two", b"yours"]
    store.set("left", "l")
    store.set("right", "r")
    assert store.delete_key("right")
    assert not store.delete_key("right")
    assert store.check(["left", "value"])
    assert not store.check(["left", "right"])


def test_a_server_of_ours_listens_on_one_address_of_the_loopback(any_server: Server) -> None:
    """127.0.0.2 is this machine too: a server on all its addresses would answer there."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", any_server.address.port), timeout=patience(5))


def test_redis_answers_nobody_without_its_password(redis_server: Server) -> None:
    """Other users of this machine reach its port."""
    with socket.create_connection((redis_server.address.host, redis_server.address.port), timeout=patience(5)) as peer:
        peer.sendall(b"KEYS *\r\n")
        assert peer.recv(100).startswith(b"-NOAUTH")


def test_a_wait_that_is_not_answered_is_torchs_own_error(any_server: Server) -> None:
    """torch's barriers catch this class and no other."""
    store = connect_store(any_server.address, attempt="overdue", timeout_s=patience(10))
    with pytest.raises(dist.DistStoreError):
        store.wait(["never"], timedelta(milliseconds=50))
    store.set_timeout(timedelta(milliseconds=50))
    with pytest.raises(dist.DistStoreError):
        store.get("never")


def test_torch_wraps_the_store_as_its_own(redis_server: Server) -> None:
    """A PrefixStore calls through C++, which finds a Python store's methods by other names."""
    inner = connect_store(redis_server.address, attempt="wrapped", timeout_s=patience(10))
    assert isinstance(inner, redis_store.RedisStore)
    assert inner.has_extended_api()
    store = dist.PrefixStore("group", inner)
    store.set("key", "value")
    assert inner.get("group/key") == b"value"
    assert inner.num_keys() == 1
    assert store.delete_key("key")
    assert inner.num_keys() == 0
    inner.client.write("group/key", b"\x00\xff")
    assert store.clone().get("key") == b"\x00\xff"
    inner.multi_set(["left", "right"], [b"l", "r"])
    inner.append("left", "onger")
    assert inner.multi_get(["left", "right"]) == [b"longer", b"r"]


def test_a_wait_is_one_command_however_many_come(redis_server: Server) -> None:
    """Eight readers of one key wait in the server; one write wakes all. Redis itself counts: 8 reads, 1 write."""
    waiting = [
        redis_client.RedisClient(redis_server.address, attempt="bell", timeout_s=patience(30), expiry_s=60)
        for _ in range(8)
    ]
    writer = redis_client.RedisClient(redis_server.address, attempt="bell", timeout_s=patience(30), expiry_s=60)
    for client in (*waiting, writer):
        client.has(["epoch"])
    before = commands(writer)
    found: list[bytes | None] = []
    threads = [Thread(target=lambda client=client: found.append(client.read("bell", 30))) for client in waiting]
    for thread in threads:
        thread.start()
    while blocked_clients(writer) < len(waiting):
        pass
    writer.write("bell", b"rung")
    for thread in threads:
        thread.join()
    after = commands(writer)
    assert found == [b"rung"] * 8
    assert after["xread"] - before["xread"] == 8
    assert after["evalsha"] - before["evalsha"] == 1
    assert after.get("exists") == before.get("exists")


def test_another_attempt_sees_nothing(any_server: Server) -> None:
    """What an earlier start of the job left behind is under another prefix."""
    stale = connect_store(any_server.address, attempt="job/1", timeout_s=patience(10))
    stale.set("go", "1")
    fresh = connect_store(any_server.address, attempt="job/2", timeout_s=patience(10))
    assert not fresh.check(["go"])


def test_keys_expire(redis_server: Server) -> None:
    """A key lives an hour here; nothing that an attempt writes stays for ever."""
    client = redis_client.RedisClient(redis_server.address, attempt="mortal", timeout_s=patience(10), expiry_s=3600)
    client.write("value", b"x")
    client.add("counter", 1)
    client.append("log", b"x")
    client.compare_set("claim", b"", b"x")
    for key in ("value", "counter", "log", "claim", "epoch"):
        assert 3590 < order(client, "TTL", f"mortal/{key}") <= 3600


def test_an_address_shows_no_password() -> None:
    """Addresses end up in messages, records and logs."""
    address = StoreAddress(scheme="redis", host="node1", port=6379, password="open sesame")
    assert "sesame" not in f"{address} {address!r}"


def test_the_store_can_be_copied_for_another_thread(redis_server: Server) -> None:
    """One waits while the other writes: with one connection for both, that would never end."""
    store = connect_store(redis_server.address, attempt="clone", timeout_s=patience(30))
    assert isinstance(store, redis_store.RedisStore)
    other = store.clone()
    found: list[bytes] = []
    thread = Thread(target=lambda: found.append(other.get("late")))
    thread.start()
    while blocked_clients(store.client) < 1:
        pass
    store.set("late", "here")
    thread.join()
    assert found == [b"here"]


def order(client: "RedisClient", *command: str) -> int:
    """Ask the server something that a store never asks."""
    reply: int = client._order(command)
    return reply


def information(client: "RedisClient", section: str) -> dict[str, str]:
    """Return what Redis says of itself."""
    text: bytes = client._order(("INFO", section))
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


def commands(client: "RedisClient") -> dict[str, int]:
    """Return how often Redis has carried out each command; a wait that is still blocked does not count yet."""
    return {
        name.removeprefix("cmdstat_"): int(text.split("calls=")[1].split(",")[0])
        for name, text in information(client, "commandstats").items()
    }


def blocked_clients(client: "RedisClient") -> int:
    """Return how many connections wait in the server."""
    return int(information(client, "clients")["blocked_clients"])
