"""TCP on the loopback device: bits a second of a stream, and the best round trip of a byte."""

import socket
import threading
import time
from pathlib import Path

from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.units import BITS_PER_BYTE

_STREAM_S = 0.3
_CHUNK_BYTES = 2**18
_NUM_ROUND_TRIPS = 200
_ROUND_TRIPS_S = 0.5


def measure_loopback(folder: Path) -> NodeResult:
    """Send a stream to a thread, then bytes back and forth."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]) as near:
        far, _ = server.accept()
        with far:
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            round_trip_s = _round_trip_s(near, far)
            rate_bps = _rate_bps(near, far)
    return NodeResult(test="loopback", figures={"loopback_bps": rate_bps, "loopback_round_trip_ns": round_trip_s * 1e9})


def _rate_bps(near: socket.socket, far: socket.socket) -> float:
    """Return the rate at which a thread takes what is sent for some time."""
    received = [0]

    def take() -> None:
        buffer = bytearray(_CHUNK_BYTES)
        while size := far.recv_into(buffer):
            received[0] += size

    thread = threading.Thread(target=take)
    thread.start()
    chunk, began_s = bytes(_CHUNK_BYTES), time.perf_counter()
    while time.perf_counter() < began_s + _STREAM_S:
        near.sendall(chunk)
    near.shutdown(socket.SHUT_WR)
    thread.join()
    return received[0] * BITS_PER_BYTE / (time.perf_counter() - began_s)


def _round_trip_s(near: socket.socket, far: socket.socket) -> float:
    times_s: list[float] = []
    end_s = time.perf_counter() + _ROUND_TRIPS_S
    while len(times_s) < _NUM_ROUND_TRIPS and (not times_s or time.perf_counter() < end_s):
        began_s = time.perf_counter()
        near.sendall(b"?")
        far.sendall(far.recv(1))
        near.recv(1)
        times_s.append(time.perf_counter() - began_s)
    return min(times_s)
