"""Messages between the processes of a job: who listens, who connects, and who is let in.

Peers that have not yet proved that they have the key are served side by side by one thread, each for a limited time and
with a few bytes of memory. Where too many wait, the oldest of the host with most of them goes, so that a flood from one
host keeps no other out. What was refused is counted by its reason.

Left out: limits to peers that have the key.
"""

import queue
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.frames import (
    FRAME_S,
    MAX_PAYLOAD_BYTES,
    ClosedError,
    Connection,
    ForgedError,
    name_of,
    receive_some,
    send_all,
)
from fabrictune.trainer_probe.operation.handshake import (
    CLIENT_HELLO_BYTES,
    PROOF_BYTES,
    SERVER_HELLO_BYTES,
    ClientHandshake,
    ServerHandshake,
)
from fabrictune.trainer_probe.operation.keys import make_key, read_key

__all__ = [
    "FRAME_S",
    "MAX_PAYLOAD_BYTES",
    "ClosedError",
    "Connection",
    "ForgedError",
    "Listener",
    "connect",
    "listen",
    "make_key",
    "name_of",
    "read_key",
]

MAX_STRANGERS = 64  # peers that have not yet proved that they have the key
HANDSHAKE_S = 5.0
MAX_WAITING = 4096  # connections that nobody has accepted yet
NO_DESCRIPTOR_S = 0.05  # until one is tried for again


class _Stranger:
    """A peer in the middle of its handshake."""

    def __init__(self, peer: socket.socket, host: str, key: bytes, deadline_s: float) -> None:
        self.socket, self.host, self.deadline_s = peer, host, deadline_s
        self._handshake = ServerHandshake(key)
        self._buffer = b""
        self._is_answered = False

    def read(self) -> Connection | str | None:
        """Take what has come; returns a connection, the reason to refuse the peer, or None while more must come."""
        wanted = PROOF_BYTES if self._is_answered else CLIENT_HELLO_BYTES
        try:
            chunk = self.socket.recv(wanted - len(self._buffer))
        except BlockingIOError:
            return None
        except OSError:
            return "ended"
        if not chunk:
            return "ended"
        self._buffer += chunk
        if len(self._buffer) < wanted:
            return None
        content, self._buffer = self._buffer, b""
        return self._finish(content) if self._is_answered else self._answer(content)

    def _answer(self, hello: bytes) -> str | None:
        answer = self._handshake.answer(hello)
        if answer is None:
            return "other protocol"
        self._is_answered = True
        try:
            num_sent = self.socket.send(answer)
        except OSError:
            return "ended"
        return None if num_sent == len(answer) else "ended"  # the first bytes of a connection always have room

    def _finish(self, proof: bytes) -> Connection | str:
        keys = self._handshake.finish(proof)
        if keys is None:
            return "wrong key"
        try:
            return Connection(self.socket, own_key=keys.of_server, peer_key=keys.of_client)
        except OSError:
            return "ended"


class Listener:
    """A socket on which peers that have the key are accepted."""

    def __init__(self, server: socket.socket, key: bytes) -> None:
        self.address: tuple[str, int] = server.getsockname()[:2]
        self._server, self._key = server, key
        self._refused = Counter[str]()
        self._strangers: dict[socket.socket, _Stranger] = {}  # oldest first
        self._accepted = queue.Queue[Connection | None](MAX_WAITING)
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="listener", daemon=True)
        self._thread.start()

    @property
    def refused(self) -> Mapping[str, int]:
        """Peers refused so far by reason: "wrong key", "other protocol", "ended", "too slow", "too many"."""
        return dict(self._refused)

    def accept(self, timeout_s: float | None = None) -> Connection:
        """Return the next peer that has the key; raises TimeoutError, and ClosedError once the listener is closed."""
        try:
            connection = self._accepted.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None
        if connection is None:
            self._accepted.put(None)  # for the next one who asks
            raise ClosedError(Mistake(where=name_of(self.address), found="is closed"))
        return connection

    def close(self) -> None:
        """End listening, and connections that nobody has accepted."""
        with suppress(OSError):
            self._wake.send(b".")
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        is_open = True
        while is_open:
            for key, _ in self._selector.select(self._patience_s()):
                if key.fileobj is self._woken:
                    is_open = False
                elif key.fileobj is self._server:
                    self._admit()
                else:
                    self._advance(key.data)
            self._drop_slow()
        self._end()

    def _patience_s(self) -> float | None:
        """Return how long the oldest stranger still has."""
        for stranger in self._strangers.values():
            return max(stranger.deadline_s - time.monotonic(), 0.0)
        return None

    def _admit(self) -> None:
        try:
            peer, address = self._server.accept()
        except BlockingIOError:  # gone before it was accepted
            return
        except OSError:  # no descriptor is free: the oldest stranger makes room
            self._drop(next(iter(self._strangers.values()), None), "too many")
            time.sleep(NO_DESCRIPTOR_S)
            return
        peer.setblocking(False)
        if len(self._strangers) >= MAX_STRANGERS:
            hosts = Counter(stranger.host for stranger in self._strangers.values())
            crowd = hosts.most_common(1)[0][0]
            self._drop(next(stranger for stranger in self._strangers.values() if stranger.host == crowd), "too many")
        stranger = _Stranger(peer, address[0], self._key, time.monotonic() + scaled(HANDSHAKE_S))
        self._strangers[peer] = stranger
        self._selector.register(peer, selectors.EVENT_READ, stranger)

    def _advance(self, stranger: _Stranger) -> None:
        if stranger.socket not in self._strangers:  # dropped since the selector named it
            return
        result = stranger.read()
        if isinstance(result, str):
            self._drop(stranger, result)
        elif isinstance(result, Connection):
            self._selector.unregister(stranger.socket)
            del self._strangers[stranger.socket]
            try:
                self._accepted.put_nowait(result)
            except queue.Full:
                self._refused["too many"] += 1
                result.close()

    def _drop_slow(self) -> None:
        now_s = time.monotonic()
        for stranger in [stranger for stranger in self._strangers.values() if stranger.deadline_s <= now_s]:
            self._drop(stranger, "too slow")

    def _drop(self, stranger: _Stranger | None, reason: str) -> None:
        if stranger is not None:
            self._refused[reason] += 1
            self._selector.unregister(stranger.socket)
            del self._strangers[stranger.socket]
            stranger.socket.close()

    def _end(self) -> None:
        for stranger in list(self._strangers.values()):
            self._drop(stranger, "ended")
        self._selector.close()
        for own in (self._server, self._wake, self._woken):
            own.close()
        with suppress(queue.Empty):
            while (connection := self._accepted.get_nowait()) is not None:
                connection.close()
        self._accepted.put(None)


def listen(host: str, port: int, key: bytes) -> Listener:
    """Return a listener on an address, port 0 for a free one; raises InputError where it cannot be had."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        server = socket.create_server(address[:2], family=family, backlog=MAX_STRANGERS)
    except OSError as error:
        raise InputError(
            Mistake(
                where=name_of((host, port)),
                found=f"cannot be listened on ({error})",
                next_step="give an address of this machine, and a port that is free",
            )
        ) from error
    server.setblocking(False)
    return Listener(server, key)


def connect(host: str, port: int, key: bytes, *, timeout_s: float) -> Connection:
    """Return a connection to a listener that has the key.

    Raises ClosedError where none can be reached in time, ForgedError where it does not have the key.
    """
    where, deadline_s = name_of((host, port)), time.monotonic() + timeout_s
    try:
        peer = socket.create_connection((host, port), timeout=timeout_s)
    except OSError as error:
        raise ClosedError(Mistake(where=where, found=f"cannot be reached ({error})")) from error
    try:
        peer.setblocking(False)
        return _prove(peer, key, where, deadline_s)
    except OSError as error:
        peer.close()
        raise ClosedError(Mistake(where=where, found=f"has not let this process in ({error})")) from error
    except BaseException:
        peer.close()
        raise


def _prove(peer: socket.socket, key: bytes, where: str, deadline_s: float) -> Connection:
    """Return the connection over a socket after the client's side of the handshake."""
    handshake = ClientHandshake(key)
    send_all(peer, handshake.hello, _left_s(deadline_s))
    answer = b""
    while len(answer) < SERVER_HELLO_BYTES:
        chunk = receive_some(peer, SERVER_HELLO_BYTES - len(answer), deadline_s)
        if not chunk:
            raise ClosedError(Mistake(where=where, found="has ended before its answer"))
        answer += chunk
    result = handshake.finish(answer)
    if result is None:
        next_step = "give both sides the same key file"
        raise ForgedError(Mistake(where=where, found="does not have the key of this process", next_step=next_step))
    proof, keys = result
    send_all(peer, proof, _left_s(deadline_s))
    return Connection(peer, own_key=keys.of_client, peer_key=keys.of_server)


def _left_s(deadline_s: float) -> float:
    return max(deadline_s - time.monotonic(), 0.0)
