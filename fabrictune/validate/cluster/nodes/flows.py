"""TCP flows between nodes, measured at the receiver: how many bytes came in a time, after the start was left out.

A receiver serves whoever knows its token. It counts from `skip_s` after the first byte until `duration_s`, answers with
one line, and reads on until the sender ends. The kernel's count is taken, with its time: what a program has read says
less, since one that had to wait for a processor reads at once what came meanwhile. Little is kept unsent
(TCP_NOTSENT_LOWAT), so that a slow link does not hold a flow much longer than it was asked for.

Left out: several streams a flow. One stream is one path, which is what a queue pair is.
"""

import hmac
import json
import selectors
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

BLOCK = bytes(2**18)
MAX_WAITING = 512
TOKEN_BYTES = 64
HEAD_BYTES = 256
PATIENCE_S = 10.0  # for what should come at once
TX_REHASH = 74  # SO_TXREHASH of Linux 6.0 and later
AT_ONCE = struct.pack("ii", 1, 0)
NOT_SENT_LOWAT, NOT_SENT_BYTES = 25, 2**17  # TCP_NOTSENT_LOWAT of Linux, which Python's socket module lacks
BYTES_RECEIVED = slice(128, 136)  # tcpi_bytes_received of Linux's struct tcp_info, since 4.1
READINGS = 3


@dataclass(frozen=True, kw_only=True)
class FlowSpec:
    """One flow, as its sender is told."""

    host: str
    port: int
    source: str  # own address, "" for whichever the route has
    source_port: int = 0  # 0: any; a flow with the ports of an earlier one takes its path
    token: str
    duration_s: float
    skip_s: float


class Receiver:
    """Listens on an address, and serves flows that bring the token, each in a thread."""

    def __init__(self, address: str, token: str) -> None:
        self._token = token
        self._listener = socket.create_server((address, 0), backlog=MAX_WAITING)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Serve nobody any more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            connection.settimeout(PATIENCE_S)
            head = _read_line(connection)
            if not hmac.compare_digest(str(head.get("token")), self._token):
                return
            duration_s, skip_s = float(head["duration_s"]), float(head["skip_s"])
            connection.settimeout(max(PATIENCE_S, duration_s))
            connection.sendall(b"{}\n")
            num_bytes, elapsed_s = _count(connection, duration_s, skip_s)
            connection.sendall(json.dumps({"num_bytes": num_bytes, "elapsed_s": elapsed_s}).encode() + b"\n")
            ends_s = time.monotonic() + PATIENCE_S
            while connection.recv(len(BLOCK)) and time.monotonic() < ends_s:
                pass


def send_flow(spec: FlowSpec) -> dict[str, Any]:
    """Send until the receiver has counted, and return its figures and the source port; raises OSError."""
    with socket.socket() as connection:
        connection.settimeout(PATIENCE_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)  # its ports are free again at its end
        connection.setsockopt(socket.IPPROTO_TCP, NOT_SENT_LOWAT, NOT_SENT_BYTES)
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, TX_REHASH, 0)  # stay on one path, also where packets are late
        connection.bind((spec.source, spec.source_port))
        connection.connect((spec.host, spec.port))
        head = {"token": spec.token, "duration_s": spec.duration_s, "skip_s": spec.skip_s}
        connection.sendall(json.dumps(head).encode() + b"\n")
        _read_line(connection)
        answer = _send_until_answered(connection, PATIENCE_S + 2 * spec.duration_s)
        source_port = connection.getsockname()[1]
    num_bytes, elapsed_s = int(answer["num_bytes"]), float(answer["elapsed_s"])
    return {"rate_bps": 8 * num_bytes / elapsed_s if elapsed_s > 0 else 0.0, "source_port": source_port}


def _count(connection: socket.socket, duration_s: float, skip_s: float) -> tuple[int, float]:
    """Return the bytes that came between `skip_s` and `duration_s` after the first, and the time between."""
    buffer = memoryview(bytearray(len(BLOCK)))
    began_s, first = 0.0, None
    while connection.recv_into(buffer):
        now_s = time.monotonic()
        began_s = began_s or now_s
        if first is None and now_s - began_s >= skip_s:
            first = _received(connection)
        if now_s - began_s >= duration_s:
            break
    if first is None:
        return 0, 0.0
    last = _received(connection)
    return last[0] - first[0], last[1] - first[1]


def _received(connection: socket.socket) -> tuple[int, float]:
    """Return how many bytes the kernel has received, and when: of several readings, that of the shortest time."""
    readings = []
    for _ in range(READINGS):
        before_s = time.monotonic()
        known = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES_RECEIVED.stop)
        after_s = time.monotonic()
        readings.append((after_s - before_s, int.from_bytes(known[BYTES_RECEIVED], sys.byteorder), after_s))
    _, num_bytes, at_s = min(readings)
    return num_bytes, at_s


def _send_until_answered(connection: socket.socket, limit_s: float) -> dict[str, Any]:
    ends_s = time.monotonic() + limit_s
    connection.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while time.monotonic() < ends_s:
            for _, events in selector.select(1.0):
                if events & selectors.EVENT_READ:
                    connection.settimeout(PATIENCE_S)
                    return _read_line(connection)
                connection.send(BLOCK)
    raise TimeoutError(f"no answer of the receiver within {limit_s:.0f} s")


def _read_line(connection: socket.socket) -> dict[str, Any]:
    """Return the values of a short line; raises OSError, ValueError."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = connection.recv(1)
        if not piece or len(line) >= HEAD_BYTES:
            raise ConnectionError("the other end closed the connection")
        line += piece
    values = json.loads(line)
    if not isinstance(values, dict):
        raise ValueError("no object")
    return values
