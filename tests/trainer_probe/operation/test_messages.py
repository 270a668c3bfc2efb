"""Messages over real connections, and what attackers without the key try on them."""

import os
import secrets
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.operation import frames, messages
from fabrictune.trainer_probe.operation.handshake import (
    CLIENT_HELLO_BYTES,
    PROOF_BYTES,
    SERVER_HELLO_BYTES,
    ClientHandshake,
    ServerHandshake,
)
from fabrictune.trainer_probe.operation.messages import (
    ClosedError,
    Connection,
    ForgedError,
    Listener,
    connect,
    listen,
)
from tests.patience import patience

HEAD_BYTES = 45


@contextmanager
def pair(listener: Listener, key: bytes) -> Iterator[tuple[Connection, Connection]]:
    """Give both ends of a connection."""
    with (
        connect(*listener.address, key, timeout_s=patience(10)) as client,
        listener.accept(patience(10)) as server,
    ):
        yield client, server


class Wire:
    """A man in the middle: the sockets of a client and of the listener, whose bytes only it passes on."""

    def __init__(self, listener: Listener, key: bytes) -> None:
        gate = socket.create_server(("127.0.0.1", 0))
        gate.settimeout(patience(10))
        clients: list[Connection] = []
        host, port = gate.getsockname()
        connecting = threading.Thread(target=lambda: clients.append(connect(host, port, key, timeout_s=patience(10))))
        connecting.start()
        self.to_client, _ = gate.accept()
        gate.close()
        self.to_server = socket.create_connection(listener.address, timeout=patience(10))
        self.hello = take(self.to_client, CLIENT_HELLO_BYTES)
        self.to_server.sendall(self.hello)
        self.answer = take(self.to_server, SERVER_HELLO_BYTES)
        self.to_client.sendall(self.answer)
        self.proof = take(self.to_client, PROOF_BYTES)
        self.to_server.sendall(self.proof)
        connecting.join()
        self.client, self.server = clients[0], listener.accept(patience(10))

    def frame(self, **values: object) -> bytes:
        """Return a frame that the client has sent, before the server sees it."""
        self.client.send(values)
        head = take(self.to_client, HEAD_BYTES)
        return head + take(self.to_client, struct.unpack(">I", head[:4])[0])

    def close(self) -> None:
        for end in (self.client, self.server, self.to_client, self.to_server):
            end.close()


def take(peer: socket.socket, num_bytes: int) -> bytes:
    content = b""
    while len(content) < num_bytes:
        chunk = peer.recv(num_bytes - len(content))
        assert chunk
        content += chunk
    return content


@pytest.fixture
def wire(listener: Listener, key: bytes) -> Iterator[Wire]:
    """A connection whose bytes the test passes on."""
    found = Wire(listener, key)
    yield found
    found.close()


def test_messages_arrive_whole_and_in_order(listener: Listener, key: bytes) -> None:
    """Both directions count for themselves, and a message of 4 MiB is one."""
    large = "x" * (frames.MAX_PAYLOAD_BYTES - 100)
    with pair(listener, key) as (client, server):
        received: list[object] = []
        reader = threading.Thread(target=lambda: received.extend(server.receive() for _ in range(101)))
        reader.start()
        for number in range(100):
            client.send({"number": number, "loss": 0.1})
        client.send({"large": large})
        reader.join()
        assert received == [*({"number": number, "loss": 0.1} for number in range(100)), {"large": large}]
        server.send({"answer": None})
        assert client.receive(patience(10)) == {"answer": None}


def test_bytes_arrive_as_they_are_between_messages(listener: Listener, key: bytes) -> None:
    """Any bytes, none and 4 MiB of them; where a message belongs they end the connection."""
    contents = [bytes(range(256)), b"", bytes(frames.MAX_PAYLOAD_BYTES)]
    with pair(listener, key) as (client, server):
        for content in contents:
            sending = threading.Thread(target=client.send_bytes, args=(content,))
            sending.start()
            assert server.receive_any(patience(10)) == content
            sending.join()
        client.send({"checksum": 1})
        assert server.receive_any(patience(10)) == {"checksum": 1}
        client.send_bytes(b"{}")
        with pytest.raises(ForgedError, match="bytes where a message belongs"):
            server.receive(patience(10))


def test_a_peer_with_another_key_is_refused_by_both(listener: Listener) -> None:
    """The client sees that the server lacks its key, and the server lets nobody in."""
    with pytest.raises(ForgedError, match="does not have the key of this process"):
        connect(*listener.address, secrets.token_bytes(32), timeout_s=patience(10))
    with pytest.raises(TimeoutError):
        listener.accept(0)


def test_a_client_without_the_key_is_not_accepted(listener: Listener) -> None:
    """It ignores the server's proof and sends any of its own: random, the server's, none."""
    for proof in (secrets.token_bytes(PROOF_BYTES), None):
        with socket.create_connection(listener.address, timeout=patience(10)) as peer:
            peer.sendall(ClientHandshake(b"guess" * 6).hello)
            answer = take(peer, SERVER_HELLO_BYTES)
            peer.sendall(proof or answer[-PROOF_BYTES:])
            assert peer.recv(1) == b""
    assert listener.refused == {"wrong key": 2}


def test_a_recorded_session_proves_nothing(wire: Wire, listener: Listener) -> None:
    """The server's nonce is another, so that the recorded proof is wrong, and so are recorded frames."""
    recorded = wire.frame(order="end")
    with socket.create_connection(listener.address, timeout=patience(10)) as peer:
        peer.sendall(wire.hello)
        take(peer, SERVER_HELLO_BYTES)
        peer.sendall(wire.proof + recorded)
        with pytest.raises((ConnectionError, AssertionError)):
            take(peer, 1)
    assert listener.refused == {"wrong key": 1}


def test_a_recorded_server_is_recognized(wire: Wire, key: bytes) -> None:
    """A client's nonce is new in each session, so that the recorded answer is none to it."""
    with socket.create_server(("127.0.0.1", 0)) as gate:
        host, port = gate.getsockname()

        def replay() -> None:
            peer, _ = gate.accept()
            with peer:
                take(peer, CLIENT_HELLO_BYTES)
                peer.sendall(wire.answer)
                peer.recv(1)

        replaying = threading.Thread(target=replay)
        replaying.start()
        with pytest.raises(ForgedError):
            connect(host, port, key, timeout_s=patience(10))
        replaying.join()


def test_a_proof_is_not_taken_back_by_its_own_side(key: bytes) -> None:
    """An attacker who sends a server its own words, as another client, has no proof of the client's kind."""
    first, second = ServerHandshake(key), ServerHandshake(key)
    answer = first.answer(ClientHandshake(b"").hello)
    assert answer is not None
    assert second.answer(answer) is None
    assert first.finish(answer[-PROOF_BYTES:]) is None


@pytest.mark.parametrize("attack", ["flipped", "repeated", "left out", "reordered", "other direction", "count", "kind"])
def test_a_frame_that_is_not_the_next_one_ends_the_connection(wire: Wire, attack: str) -> None:
    """The HMAC covers session, direction, count, kind and payload: nothing of such a frame is taken."""
    first, second = wire.frame(step=1), wire.frame(step=2)
    wire.to_server.sendall(first)
    assert wire.server.receive(patience(10)) == {"step": 1}
    bad = {
        "flipped": second[:-2] + bytes([second[-2] ^ 1]) + second[-1:],
        "repeated": first,
        "left out": wire.frame(step=3),
        "reordered": wire.frame(step=3) + second,
        "other direction": b"",
        "count": second[:4] + (7).to_bytes(8, "big") + second[12:],
        "kind": second[:12] + b"\1" + second[13:],
    }[attack]
    if attack == "other direction":
        wire.to_client.sendall(first)
        with pytest.raises(ForgedError, match="frame 0 is forged, repeated or out of order"):
            wire.client.receive(patience(10))
        return
    wire.to_server.sendall(bad)
    with pytest.raises(ForgedError, match="frame 1 is forged, repeated or out of order"):
        wire.server.receive(patience(10))
    with pytest.raises(ClosedError):
        wire.server.receive(patience(10))


def test_every_flipped_bit_of_a_frame_is_noticed(listener: Listener, key: bytes) -> None:
    """Head, HMAC and payload: one connection for each of 20 places."""
    refused = 0
    for place in range(20):
        wire = Wire(listener, key)
        frame = bytearray(wire.frame(order="end ranks", generation=3))
        frame[place * len(frame) // 20] ^= 1 << place % 8
        wire.to_server.sendall(bytes(frame) + b"\0" * 512)  # so that a length that has grown is satisfied
        try:
            wire.server.receive(0.05)
        except (ForgedError, TimeoutError):  # a length of megabytes waits for them until its limit
            refused += 1
        wire.close()
    assert refused == 20


def test_an_oversized_frame_is_refused_by_its_head(wire: Wire) -> None:
    """4 GiB are announced; nothing is kept for them."""
    wire.to_server.sendall(b"\xff" * HEAD_BYTES)
    with pytest.raises(ForgedError, match=r"a frame of 4,294,967,295 bytes"):
        wire.server.receive(patience(10))


def test_a_cut_frame_is_no_message(wire: Wire) -> None:
    """The peer ends in the middle of a frame: ClosedError, not part of a message."""
    wire.to_server.sendall(wire.frame(step=1)[:-1])
    wire.to_server.close()
    with pytest.raises(ClosedError, match="has ended"):
        wire.server.receive(patience(10))


def test_a_receiver_that_timed_out_goes_on_where_it_was(wire: Wire) -> None:
    """The first half of a frame stays until the second comes."""
    frame = wire.frame(step=1)
    wire.to_server.sendall(frame[:50])
    with pytest.raises(TimeoutError):
        wire.server.receive(patience(0.05))
    wire.to_server.sendall(frame[50:])
    assert wire.server.receive(patience(10)) == {"step": 1}


def test_a_half_open_peer_that_ends_in_a_frame_does_not_hold_its_reader(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frame's limit ends the connection, whatever the reader's own limit is."""
    wire.server._frame_s = 0.1
    wire.to_server.sendall(wire.frame(step=1)[:50])
    with pytest.raises(ClosedError, match=r"has sent no whole frame for 0\.1 s"):
        wire.server.receive()


def test_a_peer_that_takes_nothing_does_not_hold_its_sender(wire: Wire) -> None:
    """Once the socket's memory is full, the frame's limit ends the connection."""
    wire.server._frame_s = 0.1

    def send_until_full() -> None:
        while True:
            wire.server.send({"large": "x" * (1 << 20)})

    with pytest.raises(ClosedError, match="takes nothing"):
        send_until_full()


def test_a_crowd_of_strangers_keeps_nobody_out(listener: Listener, key: bytes) -> None:
    """80 send one byte: 64 at most wait, and a peer with the key gets in beside them."""
    crowd = [socket.create_connection(listener.address, timeout=patience(20)) for _ in range(80)]
    for peer in crowd:
        peer.sendall(b"f")
    with pair(listener, key) as (client, server):
        client.send({"in": True})
        assert server.receive(patience(10)) == {"in": True}
    assert listener.refused["too many"] >= 16
    for peer in crowd:
        peer.close()


def test_a_slow_stranger_goes_in_time(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has sent one byte and says nothing more: the clock ends it."""
    monkeypatch.setattr(messages, "HANDSHAKE_S", 0.05)
    with socket.create_connection(listener.address, timeout=patience(20)) as peer:
        peer.sendall(b"f")
        assert peer.recv(1) == b""
    assert listener.refused == {"too slow": 1}


def test_strangers_occupy_little_memory(listener: Listener) -> None:
    """A peer that floods before it is let in is cut off after the hello's bytes, whatever it sends."""
    flood = os.urandom(1 << 26)  # more than sockets hold on their way
    with socket.create_connection(listener.address, timeout=patience(10)) as peer, pytest.raises(ConnectionError):
        peer.sendall(flood)
    assert listener.refused == {"other protocol": 1}


def test_another_protocol_is_refused_at_once(listener: Listener) -> None:
    """A browser that comes by mistake gets no answer."""
    with socket.create_connection(listener.address, timeout=patience(10)) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something long enough\r\n\r\n")
        with suppress(ConnectionResetError):
            assert peer.recv(1) == b""
    assert listener.refused == {"other protocol": 1}


def test_closing_wakes_whoever_waits(listener: Listener, key: bytes) -> None:
    """A thread in `receive` and one in `accept` both raise ClosedError."""
    found = []

    def note(wait) -> None:
        with pytest.raises(ClosedError, match="is closed"):
            wait()
        found.append(wait)

    with pair(listener, key) as (client, _):
        waiting = [threading.Thread(target=note, args=(wait,)) for wait in (client.receive, listener.accept)]
        for thread in waiting:
            thread.start()
        client.close()
        listener.close()
        for thread in waiting:
            thread.join()
    assert len(found) == 2


def test_nobody_listening_is_said(key: bytes) -> None:
    """Where to look stands in the message."""
    with listen("127.0.0.1", 0, key) as listener:
        host, port = listener.address
    with pytest.raises(ClosedError, match=rf"127.0.0.1:{port}: cannot be reached"):
        connect(host, port, key, timeout_s=patience(10))


def test_an_address_of_another_machine_cannot_be_listened_on(key: bytes) -> None:
    """The system's reason is passed on."""
    with pytest.raises(InputError, match="cannot be listened on"):
        listen("192.0.2.1", 0, key)
