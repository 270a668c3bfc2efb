"""Messages between a measurement and its ends are bounded, and only who knows the token is heard."""

import json
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from fabrictune.foundation.time_limits import SCALE_VARIABLE
from fabrictune.rdma_bench.verbs import channel
from fabrictune.rdma_bench.verbs.channel import ChannelError

TOKEN = "0123456789abcdef" * 4


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give two connected sockets."""
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_a_message_arrives_as_it_was_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    """Text of any alphabet, numbers, lists."""
    message = {"do": "open", "device": "mlx5_0 é", "sizes": [1, 2.5, None]}
    channel.send_message(ends[0], message)
    assert channel.receive_message(ends[1]) == message


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (struct.pack("!I", 2**31), "it sends a message of 2147483648 bytes, more than 1048576"),
        (struct.pack("!I", 3) + b"no{", "it sends what is no JSON"),
        (struct.pack("!I", 2) + b"[]", "it sends what is no JSON object"),
        (struct.pack("!I", 9) + b"cut", "it is gone (closed)"),
        (struct.pack("!I", 20_000) + b"[" * 20_000, "it sends what is no JSON"),
    ],
)
def test_what_is_no_message_is_refused(ends: tuple[socket.socket, socket.socket], content: bytes, found: str) -> None:
    """Too long, not JSON, not an object, cut short, nested without end: one error, in bounded memory."""
    ends[0].sendall(content)
    ends[0].close()
    with pytest.raises(ChannelError) as caught:
        channel.receive_message(ends[1])
    assert caught.value.mistakes[0].found == found


def test_both_ends_prove_that_they_know_the_token(ends: tuple[socket.socket, socket.socket]) -> None:
    """And the token itself never crosses the wire."""
    worker = threading.Thread(target=channel.greet_as_worker, args=(ends[0], TOKEN))
    worker.start()
    channel.greet_as_controller(ends[1], TOKEN)
    worker.join()
    channel.send_message(ends[0], {"ready": True})
    assert channel.receive_message(ends[1]) == {"ready": True}


def test_another_token_is_refused(ends: tuple[socket.socket, socket.socket]) -> None:
    """The worker answers with a refusal and hears nothing more."""
    refused = []

    def greet() -> None:
        with pytest.raises(ChannelError) as caught:
            channel.greet_as_worker(ends[0], TOKEN)
        refused.append(caught.value.mistakes[0].found)

    worker = threading.Thread(target=greet)
    worker.start()
    with pytest.raises(ChannelError):
        channel.greet_as_controller(ends[1], TOKEN[::-1])
    worker.join()
    assert refused == ["it does not know the token"]


def test_a_worker_that_only_repeats_is_not_believed(ends: tuple[socket.socket, socket.socket]) -> None:
    """What the controller proves is no proof of a worker's, so sending it back helps nobody."""

    def impostor() -> None:
        channel.send_message(ends[0], {"challenge": "00"})
        channel.send_message(ends[0], {"proof": channel.receive_message(ends[0])["proof"]})

    thread = threading.Thread(target=impostor)
    thread.start()
    with pytest.raises(ChannelError):
        channel.greet_as_controller(ends[1], TOKEN)
    thread.join()


def test_a_stranger_has_one_deadline_however_slowly_it_speaks(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte each 20 ms, of a message of 512: it would take 10 s, and the worker serves nobody else meanwhile."""
    monkeypatch.setattr(channel, "GREETING_TIMEOUT_S", 0.2)
    monkeypatch.setenv(SCALE_VARIABLE, "1")
    over = threading.Event()

    def trickle() -> None:
        for byte in struct.pack("!I", 512) + b"[" * 512:
            if over.wait(0.02):
                return
            ends[1].sendall(bytes([byte]))

    stranger = threading.Thread(target=trickle)
    stranger.start()
    with pytest.raises(ChannelError) as caught:
        channel.greet_as_worker(ends[0], TOKEN)
    over.set()
    stranger.join()
    assert caught.value.mistakes[0].found == "it does not answer"


def test_a_lost_host_is_noticed_within_half_a_minute() -> None:
    """10 s without a word, then four probes 5 s apart; and 30 s for what was sent and never confirmed."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as connection:
        connection.connect(listener.getsockname())
        channel.keep_alive(connection)
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        found = [connection.getsockopt(socket.IPPROTO_TCP, name) for name in names]
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert found == [10, 5, 4, 30_000]


def test_the_token_is_not_in_what_is_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    """All that a controller says while it greets, read as a stranger would."""
    channel.send_message(ends[0], {"challenge": "00"})
    channel.send_message(ends[0], {"proof": ""})
    with pytest.raises(ChannelError):
        channel.greet_as_controller(ends[1], TOKEN)
    assert TOKEN not in json.dumps(channel.receive_message(ends[0]))


def test_an_end_that_closed_is_noticed(ends: tuple[socket.socket, socket.socket]) -> None:
    """Without taking what it sent before."""
    assert not channel.has_ended(ends[1])
    channel.send_message(ends[0], {"last": "words"})
    assert not channel.has_ended(ends[1])
    assert channel.receive_message(ends[1]) == {"last": "words"}
    ends[0].close()
    assert channel.has_ended(ends[1])
