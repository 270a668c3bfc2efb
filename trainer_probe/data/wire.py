"""The protocol between a loader and its workers: JSON messages on a local socket, and shared memory.

The memory has no name (`memfd`): the loader passes its descriptor to each worker, and the system frees it when the last
of them has ended, however it ended. The socket preserves message boundaries (`SOCK_SEQPACKET`) and closes with its
other end, so that no process waits for a dead one. Its address has no file either (Linux's abstract names); both ends
check that the other belongs to the same user.
"""

import json
import mmap
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import FabrictuneError, InputError, LoaderError, Mistake, TokenFileError

_LONGEST_MESSAGE = 2**16
_CREDENTIALS = struct.Struct("3i")  # process, user, group
_ERRORS: Mapping[str, type[FabrictuneError]] = {
    kind.__name__: kind for kind in (InputError, TokenFileError, LoaderError)
}


@dataclass(frozen=True, kw_only=True)
class Slots:
    """The shape of shared memory: N slots of B replicas, each R rows of C ids."""

    num_slots: int
    replicas: tuple[int, ...]
    rows: int
    columns: int
    id_bytes: int

    @property
    def num_bytes(self) -> int:
        """Size of all slots."""
        return self.num_slots * len(self.replicas) * self.rows * self.columns * self.id_bytes

    def over(self, memory: mmap.mmap) -> NDArray[Any]:
        """Return the memory as an array (N, B, R, C)."""
        shape = (self.num_slots, len(self.replicas), self.rows, self.columns)
        return np.frombuffer(memory, dtype=f"<u{self.id_bytes}").reshape(shape)


def make_memory(num_bytes: int, available_bytes: int) -> int:
    """Return the descriptor of allocated memory without a name; raises LoaderError where there is too little.

    At most half of the available memory is allocated: for more, the system might kill other processes.
    """
    if num_bytes > available_bytes // 2:
        raise LoaderError(
            Mistake(
                where="loader",
                found=f"batches of {num_bytes} bytes in all",
                allowed=f"{available_bytes // 2}, half of the available memory",
                next_step="prefetch fewer batches, or smaller ones",
            )
        )
    descriptor = os.memfd_create("fabrictune-batches")
    os.posix_fallocate(descriptor, 0, num_bytes)  # now, rather than page by page during training
    return descriptor


def available_bytes() -> int:
    """Return the memory that is available without swapping, by the kernel's estimate."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def send_message(connection: socket.socket, message: Mapping[str, Any], *descriptors: int) -> None:
    """Send a message with descriptors of open files."""
    socket.send_fds(connection, [json.dumps(message).encode()], descriptors)


def receive_message(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and its descriptors; raises EOFError where the other end is closed."""
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_MESSAGE, 1)
    except ConnectionError:
        data = b""
    if not data:
        raise EOFError
    return json.loads(data), descriptors


def belongs_to_this_user(connection: socket.socket) -> bool:
    """Return whether the process at the other end runs as the same user as this one."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[1] == os.getuid())


def encode_error(error: FabrictuneError) -> dict[str, Any]:
    """Return an error as a message."""
    return {"error": type(error).__name__, "mistakes": [asdict(mistake) for mistake in error.mistakes]}


def decode_error(message: Mapping[str, Any]) -> FabrictuneError:
    """Return the error in a message."""
    return _ERRORS[message["error"]](*(Mistake(**mistake) for mistake in message["mistakes"]))
