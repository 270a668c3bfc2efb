"""Authenticated frames: JSON objects or bytes over a TCP connection whose two sides have proved that they share a key.

A frame is its payload's length (4 bytes), its count in its direction (8), its kind (1), an HMAC-SHA256 (32) over all
three and the payload under the key of session and direction (`handshake.py`), and the payload: one JSON object in
UTF-8, or bytes as they are. A frame that is forged, repeated, left out or out of order has another count or HMAC than
the next one; the connection then ends. So does one whose frame does not arrive whole in time.

Left out: secrecy, and messages of more than 4 MiB.
"""

import hmac
import json
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled

MAX_PAYLOAD_BYTES = 4 << 20
FRAME_S = 30.0  # for a frame to arrive or leave whole, once it has begun
KEEPALIVE_S = 10  # until a silent peer is probed, and between three probes: a host that is gone is noticed
_HEAD = struct.Struct(">IQB32s")
_COUNTED = struct.Struct(">IQB")
_MESSAGE, _BYTES = 0, 1  # kinds of frames
_KEPT_BYTES = (1 << 20) + _HEAD.size  # of a connection's memory between two frames


class ClosedError(UnavailableError):
    """A connection that has ended, or that cannot be made."""


class ForgedError(UnavailableError):
    """A peer without the key, or a frame that is not the next one of its sender."""


class Connection:
    """A connection to a peer that has the key. One thread may send while another receives."""

    def __init__(self, peer_socket: socket.socket, *, own_key: bytes, peer_key: bytes) -> None:
        self.peer: tuple[str, int] = peer_socket.getpeername()[:2]
        self._socket = peer_socket
        self._own_key, self._peer_key = own_key, peer_key
        self._num_sent = self._num_received = 0
        self._frame_s = scaled(FRAME_S)
        self._sending, self._receiving = threading.Lock(), threading.Lock()
        self._buffer = bytearray(_HEAD.size)  # its first bytes are of a frame that is not whole yet
        self._num_buffered = 0
        self._began_s = 0.0
        self._end = ""  # why the connection has ended
        _set_options(peer_socket, self._frame_s)

    def send(self, values: Mapping[str, Any]) -> None:
        """Send one message; raises ClosedError where the peer is gone or takes nothing for too long."""
        self._send(_MESSAGE, json.dumps(values, separators=(",", ":")).encode())

    def send_bytes(self, content: bytes) -> None:
        """Send bytes as they are; raises as `send` does."""
        self._send(_BYTES, content)

    def receive(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Return the next message.

        Raises TimeoutError where none has come in time, after which one may ask again; ClosedError; and ForgedError.
        """
        received = self.receive_any(timeout_s)
        if isinstance(received, bytes):
            raise self._forged("bytes where a message belongs")
        return received

    def receive_any(self, timeout_s: float | None = None) -> dict[str, Any] | bytes:
        """Return the next message or the next bytes, whichever comes; raises as `receive` does."""
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        with self._receiving:
            self._check_open()
            self._fill(_HEAD.size, deadline_s)
            length, count, kind, proof = _HEAD.unpack_from(self._buffer)
            if length > MAX_PAYLOAD_BYTES:
                raise self._forged(f"a frame of {length:,} bytes")
            self._fill(_HEAD.size + length, deadline_s)
            payload = bytes(memoryview(self._buffer)[_HEAD.size : _HEAD.size + length])
            expected = _proof(self._peer_key, _COUNTED.pack(length, self._num_received, kind), payload)
            if count != self._num_received or not hmac.compare_digest(proof, expected):
                raise self._forged(f"frame {self._num_received} is forged, repeated or out of order")
            self._num_received += 1
            self._num_buffered = 0
            if len(self._buffer) > _KEPT_BYTES:
                self._buffer = bytearray(_HEAD.size)
            return payload if kind == _BYTES else self._decode(payload)

    def _send(self, kind: int, payload: bytes) -> None:
        assert len(payload) <= MAX_PAYLOAD_BYTES, f"a message of {len(payload):,} bytes"
        with self._sending:
            counted = _COUNTED.pack(len(payload), self._num_sent, kind)
            self._num_sent += 1
            head = counted + _proof(self._own_key, counted, payload)
            self._check_open()
            try:
                send_all(self._socket, b"".join((head, payload)), self._frame_s)
            except OSError as error:
                raise self._ended(f"has ended ({error})") from error

    def close(self) -> None:
        """End the connection; a thread that sends or receives raises ClosedError."""
        self._shut("is closed")
        with self._sending, self._receiving:  # nobody waits for a descriptor that may soon be another's
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, num_bytes: int, deadline_s: float | None) -> None:
        """Return once the buffer has so many bytes of the current frame."""
        if len(self._buffer) < num_bytes:
            self._buffer.extend(bytes(num_bytes - len(self._buffer)))
        while self._num_buffered < num_bytes:
            self._check_open()
            limit_s = self._began_s + self._frame_s if self._num_buffered else None
            moments_s = [moment_s for moment_s in (limit_s, deadline_s) if moment_s is not None]
            room = memoryview(self._buffer)[self._num_buffered : num_bytes]
            try:
                num_received = receive_into(self._socket, room, min(moments_s, default=None))
            except TimeoutError:
                if limit_s is not None and time.monotonic() >= limit_s:
                    raise self._ended(f"has sent no whole frame for {self._frame_s:g} s") from None
                raise
            except OSError as error:
                raise self._ended(f"has ended ({error})") from error
            finally:
                room.release()
            if not num_received:
                raise self._ended("has ended")
            if not self._num_buffered:
                self._began_s = time.monotonic()
            self._num_buffered += num_received

    def _decode(self, payload: bytes) -> dict[str, Any]:
        try:
            values = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise self._forged("a message that is no JSON") from error
        if not isinstance(values, dict):
            raise self._forged("a message that is no JSON object")
        return values

    def _check_open(self) -> None:
        if self._end:
            raise ClosedError(Mistake(where=name_of(self.peer), found=self._end))

    def _ended(self, found: str) -> ClosedError:
        self._shut(found)
        return ClosedError(Mistake(where=name_of(self.peer), found=self._end))

    def _forged(self, found: str) -> ForgedError:
        self._shut(found)
        return ForgedError(Mistake(where=name_of(self.peer), found=found, next_step="the connection is closed"))

    def _shut(self, found: str) -> None:
        self._end = self._end or found
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


def name_of(address: tuple[str, int]) -> str:
    """Return an address as text."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def send_all(peer: socket.socket, content: bytes, timeout_s: float) -> None:
    """Send over a socket that does not block; raises OSError, TimeoutError where the peer takes it not in time."""
    deadline_s, view = time.monotonic() + timeout_s, memoryview(content)
    while view:
        try:
            view = view[peer.send(view) :]
        except BlockingIOError:
            if not _is_ready(peer, select.POLLOUT, deadline_s):
                raise TimeoutError(f"takes nothing for {timeout_s:g} s") from None


def receive_into(peer: socket.socket, room: memoryview, deadline_s: float | None) -> int:
    """Return how many bytes of what a socket that does not block has were put there, 0 at its end.

    Raises OSError, TimeoutError.
    """
    while True:
        try:
            return peer.recv_into(room)
        except BlockingIOError:
            if not _is_ready(peer, select.POLLIN, deadline_s):
                raise TimeoutError("sends nothing") from None


def receive_some(peer: socket.socket, max_bytes: int, deadline_s: float | None) -> bytes:
    """Return what a socket that does not block has, nothing at its end; raises OSError, TimeoutError."""
    room = bytearray(max_bytes)
    with memoryview(room) as view:
        num_received = receive_into(peer, view, deadline_s)
    return bytes(room[:num_received])


def _proof(key: bytes, counted: bytes, payload: bytes) -> bytes:
    """Return the HMAC of a frame."""
    proof = hmac.new(key, counted, "sha256")
    proof.update(payload)
    return proof.digest()


def _is_ready(peer: socket.socket, events: int, deadline_s: float | None) -> bool:
    poll = select.poll()
    poll.register(peer, events)
    left_ms = None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0) * 1000
    return bool(poll.poll(left_ms))


def _set_options(peer: socket.socket, unanswered_s: float) -> None:
    peer.setblocking(False)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {
        socket.TCP_NODELAY: 1,
        socket.TCP_KEEPIDLE: KEEPALIVE_S,
        socket.TCP_KEEPINTVL: KEEPALIVE_S,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: round(unanswered_s * 1000),
    }.items():
        peer.setsockopt(socket.IPPROTO_TCP, name, value)
