"""Channel between a measurement and its ends: JSON messages of limited length, between two that know the same token.

Both prove that they know it by a keyed digest of the other's random challenge, so that the token itself is never sent.
Messages are neither encrypted nor signed after that: they say which device to measure and how, and what came of it.

A message is its length, four bytes in network order, and one JSON object in UTF-8.
"""

import hmac
import json
import secrets
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled

MAX_MESSAGE_BYTES = 2**20
GREETING_TIMEOUT_S = 10.0
# A host that vanished says nothing more; its end of the connection is given up after 10 s and four probes 5 s apart.
_KEEPALIVE = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 4, socket.TCP_USER_TIMEOUT: 30_000}
_LENGTH = struct.Struct("!I")
_GREETING_BYTES = 512

WorkerMessage = Mapping[str, Any]


class ChannelError(UnavailableError):
    """The other end is gone, says what is no message, or does not know the token."""


def send_message(connection: socket.socket, message: WorkerMessage) -> None:
    """Send a message; raises ChannelError."""
    text = json.dumps(message).encode()
    if len(text) > MAX_MESSAGE_BYTES:
        raise _broken(connection, f"a message of {len(text)} bytes")
    try:
        connection.sendall(_LENGTH.pack(len(text)) + text)
    except OSError as error:
        raise _broken(connection, f"it is gone ({error})") from error


def receive_message(
    connection: socket.socket, *, at_most: int = MAX_MESSAGE_BYTES, within_s: float | None = None
) -> dict[str, Any]:
    """Return the next message; raises ChannelError where there is none, or it is too long, or not whole `within_s`."""
    deadline_s = None if within_s is None else time.monotonic() + within_s
    try:
        (length,) = _LENGTH.unpack(_receive_bytes(connection, _LENGTH.size, deadline_s))
        if length > at_most:
            raise _broken(connection, f"it sends a message of {length} bytes, more than {at_most}")
        message = json.loads(_receive_bytes(connection, length, deadline_s))
    except TimeoutError as error:
        raise _broken(connection, "it does not answer") from error
    except OSError as error:
        raise _broken(connection, f"it is gone ({error})") from error
    except (ValueError, RecursionError) as error:
        raise _broken(connection, "it sends what is no JSON") from error
    if not isinstance(message, dict):
        raise _broken(connection, "it sends what is no JSON object")
    return message


def greet_as_worker(connection: socket.socket, token: str) -> None:
    """Have the connected peer prove that it knows the token; raises ChannelError."""
    connection.settimeout(limit_s := scaled(GREETING_TIMEOUT_S))
    challenge = secrets.token_hex(32)
    send_message(connection, {"challenge": challenge})
    answer = receive_message(connection, at_most=_GREETING_BYTES, within_s=limit_s)
    if not _is_proof(answer.get("proof"), token, f"controller {challenge}"):
        send_message(connection, {"refused": "another token"})
        raise _broken(connection, "it does not know the token")
    send_message(connection, {"proof": _proof(token, f"worker {answer.get('challenge')}")})
    connection.settimeout(None)


def greet_as_controller(connection: socket.socket, token: str) -> None:
    """Prove to a worker that we know the token, and let it prove the same; raises ChannelError."""
    connection.settimeout(limit_s := scaled(GREETING_TIMEOUT_S))
    challenge = secrets.token_hex(32)
    theirs = receive_message(connection, at_most=_GREETING_BYTES, within_s=limit_s).get("challenge")
    send_message(connection, {"proof": _proof(token, f"controller {theirs}"), "challenge": challenge})
    proof = receive_message(connection, at_most=_GREETING_BYTES, within_s=limit_s).get("proof")
    if not _is_proof(proof, token, f"worker {challenge}"):
        raise _broken(connection, "it has another token, or is busy", "give both ends the same token file")
    connection.settimeout(None)


def keep_alive(connection: socket.socket) -> None:
    """Have the system end a TCP connection, within half a minute, whose other host has vanished."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def has_ended(connection: socket.socket) -> bool:
    """Return whether the other end has closed its side; takes nothing that was sent."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _proof(token: str, challenge: str) -> str:
    return hmac.new(token.encode(), challenge.encode(), "sha256").hexdigest()


def _is_proof(found: Any, token: str, challenge: str) -> bool:
    return isinstance(found, str) and hmac.compare_digest(found.encode(), _proof(token, challenge).encode())


def _receive_bytes(connection: socket.socket, num_bytes: int, deadline_s: float | None) -> bytes:
    before_s = connection.gettimeout()
    received = b""
    try:
        while len(received) < num_bytes:
            if deadline_s is not None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError
                connection.settimeout(left_s)
            part = connection.recv(min(num_bytes - len(received), 2**16))
            if not part:
                raise ConnectionError("closed")
            received += part
    finally:
        connection.settimeout(before_s)
    return received


def _broken(connection: socket.socket, found: str, next_step: str = "") -> ChannelError:
    try:
        name = connection.getpeername()
        where = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "the other end"
    except OSError:
        where = "the other end"
    return ChannelError(Mistake(where=where, found=found, next_step=next_step))
