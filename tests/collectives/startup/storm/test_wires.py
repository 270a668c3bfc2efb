"""An emulated rank's bytes are those of the real clients, which are recorded on their way to real servers."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread

import pytest

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.servers import Server
from fabrictune.collectives.startup.store_operations import Add, CheckKey, CompareSet, Get, Set, Steps, Wait
from fabrictune.collectives.startup.storm.clients import connected, run_storm
from fabrictune.collectives.startup.storm.redis_wire import RedisWire, parse_resp
from fabrictune.collectives.startup.storm.tcp_store_wire import TcpStoreWire
from fabrictune.collectives.startup.storm.wires import StoreProtocol
from tests.patience import patience

dist = pytest.importorskip("torch.distributed")
performing = pytest.importorskip("fabrictune.collectives.startup.store_runner")
redis_client = pytest.importorskip("fabrictune.collectives.startup.redis_client")
redis_store = pytest.importorskip("fabrictune.collectives.startup.redis_store")

OPERATIONS = (
    Set("key", "value"),
    CompareSet("claim", "", "mine"),
    CompareSet("claim", "", "yours"),
    Add("counter", 3),
    Add("counter", -4),
    Get("key"),
    Wait(("key", "claim")),
    CheckKey("key"),
    CheckKey("absent"),
)
REPLIES = [None, "mine", "mine", 3, -1, "value", None, True, False]


def ask_everything(replies: list[object]) -> Steps[None]:
    """Do every kind of operation, and keep the replies."""
    for operation in OPERATIONS:
        reply = yield operation
        replies.append(reply)


@contextmanager
def recorded(address: StoreAddress) -> Iterator[tuple[StoreAddress, bytearray]]:
    """Give an address that leads to a server, and what the one client that comes there sends."""
    sent = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as server:
        server.connect((address.host, address.port))

        def pass_on(source: socket.socket, target: socket.socket, record: bytearray) -> None:
            while data := source.recv(65536):
                record += data
                target.sendall(data)

        def serve() -> None:
            with listener.accept()[0] as client:
                back = Thread(target=pass_on, args=(server, client, bytearray()))
                back.start()
                try:
                    pass_on(client, server, sent)
                finally:
                    server.shutdown(socket.SHUT_RDWR)
                    back.join()

        thread = Thread(target=serve)
        thread.start()
        yield replace(address, port=listener.getsockname()[1]), sent
        thread.join()


def emulate(address: StoreAddress, wire: StoreProtocol) -> tuple[list[object], int]:
    """Let one emulated rank ask everything; returns the replies and the number of requests."""
    replies: list[object] = []

    async def run() -> int:
        async with connected(address, wire, 1) as ranks:
            return (await run_storm(ranks, [ask_everything(replies)], 10)).num_requests

    num_requests = asyncio.run(run())
    return replies, num_requests


def test_tcp_store_bytes_are_those_of_torchs_client(tcp_server: Server) -> None:
    """The greeting's ping carries a number of the client's choice; the rest is equal byte for byte."""
    replies: list[object] = []
    with recorded(tcp_server.address) as (address, real):
        inner = dist.TCPStore(address.host, address.port, is_master=False, wait_for_workers=False)
        store = dist.PrefixStore("real", inner)
        performing.perform(store, ask_everything(replies), deadline_s=time.monotonic() + patience(30))
        del store, inner
    with recorded(tcp_server.address) as (address, emulated):
        assert emulate(address, TcpStoreWire("fake")) == (REPLIES, len(OPERATIONS) + 1)
    assert replies == REPLIES
    greeting = len(b"\0MAGC" + b"\rPING")
    assert real[:6] == emulated[:6]
    assert real[greeting:].replace(b"/real/", b"/fake/") == emulated[greeting:]


def test_redis_bytes_are_those_of_the_store(redis_server: Server) -> None:
    """What comes before is the driver's introduction of itself; how long to wait is the caller's affair."""
    replies: list[object] = []
    client = redis_client.RedisClient(redis_server.address, attempt="real", timeout_s=patience(10), expiry_s=60)
    client.connect()
    client.close()
    with recorded(redis_server.address) as (address, real):
        store = redis_store.RedisStore(
            redis_client.RedisClient(address, attempt="real", timeout_s=patience(10), expiry_s=60)
        )
        performing.perform(store, ask_everything(replies), deadline_s=time.monotonic() + patience(30))
        store.client.close()
    wire = RedisWire("fake", password=redis_server.address.password or "", expiry_ms=60_000, timeout_s=patience(10))
    with recorded(redis_server.address) as (address, emulated):
        assert emulate(address, wire) == (REPLIES, len(OPERATIONS) + 1)
    assert replies == REPLIES
    assert orders(real, "real") == orders(emulated, "fake")


def orders(sent: bytearray, attempt: str) -> list[bytes]:
    """Return the words of all commands from the first operation on, without how long to wait."""
    text = bytes(sent).replace(f"{attempt}/".encode(), b"/")
    words = [word for word in text[text.index(b"/key") :].split(b"\r\n") if not word.startswith((b"$", b"*"))]
    return [word for place, word in enumerate(words) if place == 0 or words[place - 1] != b"BLOCK"]


def test_a_reply_that_is_not_all_there_is_waited_for() -> None:
    """Every beginning of a nested reply is no reply yet."""
    reply = b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nv\r\n$2\r\n\r\n\r\n"
    assert [parse_resp(reply[:size]) for size in range(len(reply))] == [None] * len(reply)
    assert parse_resp(reply) == ([[b"k", [[b"1-0", [b"v", b"\r\n"]]]]], len(reply))


def test_a_refusal_ends_the_rank_with_the_servers_words(redis_server: Server) -> None:
    """A wrong password: no emulated rank goes on as if it had been let in."""
    wire = RedisWire("fake", password="wrong", expiry_ms=60_000, timeout_s=patience(10))
    with pytest.raises(ConnectionError, match="WRONGPASS"):
        emulate(redis_server.address, wire)
