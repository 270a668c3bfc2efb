"""One file from one node's memory to another's, in chunks over authenticated frames.

The sender names the file, its size and the generation it belongs to; then come the bytes, and a CRC32C of the whole.
The receiver checks both and only then gives the file its name.

Source: CRC32C: RFC 3720, appendix B.4.
"""

import threading
import time
from pathlib import Path
from typing import Any

import google_crc32c

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.frames import Connection
from fabrictune.trainer_probe.operation.node_memory import NodeMemory

CHUNK_BYTES = 1 << 20
CONNECT_S = 5.0  # to reach another node
ANSWER_S = 30.0


class TransferError(UnavailableError):
    """A file that did not arrive as it was sent, or that the other side refused."""


class Throttle:
    """A limit to bytes a second."""

    def __init__(self, bytes_per_s: float | None) -> None:
        self._bytes_per_s = bytes_per_s
        self._next_s = time.monotonic()

    def wait(self, num_bytes: int, is_over: threading.Event) -> None:
        """Wait until so many bytes may be sent, or until it is over."""
        if self._bytes_per_s is not None:
            now_s = time.monotonic()
            is_over.wait(max(self._next_s - now_s, 0.0))
            self._next_s = max(self._next_s, now_s) + num_bytes / self._bytes_per_s


def send_file(
    connection: Connection, path: Path, num_bytes: int, *, throttle: Throttle, is_over: threading.Event
) -> None:
    """Send a file's bytes and its checksum; raises OSError for the file, ClosedError for the peer."""
    checksum, left = 0, num_bytes
    with path.open("rb") as file:
        while left:
            chunk = file.read(min(CHUNK_BYTES, left))
            if not chunk:
                raise TransferError(Mistake(where=str(path), found="has become shorter"))
            throttle.wait(len(chunk), is_over)
            if is_over.is_set():
                raise TransferError(Mistake(where=str(path), found="is not sent any more"))
            checksum = google_crc32c.extend(checksum, chunk)
            connection.send_bytes(chunk)
            left -= len(chunk)
    connection.send({"checksum": checksum})


def receive_file(connection: Connection, memory: NodeMemory, name: str, num_bytes: int, generation: int) -> None:
    """Take a file of a given size into memory; raises TransferError where it is damaged, MemoryRefusedError."""
    checksum = received = 0
    with memory.new_file(name, num_bytes, generation) as half, half.open("wb") as file:
        while True:
            frame = connection.receive_any(scaled(ANSWER_S))
            if not isinstance(frame, bytes):
                break
            received += len(frame)
            if received > num_bytes:
                raise TransferError(Mistake(where=name, found=f"more than {num_bytes:,} bytes"))
            checksum = google_crc32c.extend(checksum, frame)
            file.write(frame)
        file.flush()
        if received != num_bytes or frame.get("checksum") != checksum:
            found = f"{received:,} bytes with another checksum" if received == num_bytes else f"{received:,} bytes"
            raise TransferError(Mistake(where=name, found=found, allowed=f"{num_bytes:,} bytes as they were sent"))


def ask(connection: Connection, **values: Any) -> dict[str, Any]:
    """Send a request and return its answer; raises TransferError where it is refused or none comes."""
    connection.send(values)
    try:
        answer = connection.receive(scaled(ANSWER_S))
    except TimeoutError as error:
        raise TransferError(Mistake(where=str(connection.peer), found="has not answered")) from error
    if "refused" in answer:
        raise TransferError(Mistake(where=str(values.get("name", values.get("do"))), found=str(answer["refused"])))
    return answer
