"""Background loaders: one for all workers of a machine, or, for comparison, one for each worker.

A loader is a process of its own; a worker has a connection to it. With one loader for a machine the token file is
read once for all workers that want the same rows (the tensor-parallel ranks of a replica do), and each copies its rows
from shared memory: a tree of two layers. A loader for each worker is the same with a single worker each.

A killed loader leaves nothing behind, and each worker's next batch raises LoaderError; so does a late batch.

Source: MegaScale (NSDI'24), section 3.4.

Shapes: R rows of a replica; C columns, the sequence length and one.
"""

import mmap
import os
import socket
import subprocess
import time
import uuid
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import FabrictuneError, LoaderError, Mistake
from fabrictune.trainer_probe.data import wire
from fabrictune.trainer_probe.data.service import Service

_PATIENCE_S = 0.02  # between two attempts to reach a loader that has not started yet
_FAREWELL_S = 5.0  # for workers that still use a loader when its owner closes it


class LoaderProcess:
    """A loader as its owner uses it; workers of the same user connect to `address`. A context manager."""

    def __init__(self, service: Service, address: str | None = None, *, ends_with_owner: bool = False) -> None:
        """Start the loader; raises LoaderError where another has the address.

        One that ends with its owner is killed with the thread that makes it, even where it is stopped.
        """
        self.address = address or f"fabrictune-loader-{uuid.uuid4().hex}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            try:
                listener.bind(_abstract(self.address))
            except OSError as error:
                raise LoaderError(
                    Mistake(
                        where=f"loader {self.address}",
                        found=f"cannot be started: {error.strerror}",
                        next_step="end the job that has this name, or choose another",
                    )
                ) from None
            listener.listen(service.num_workers)
            descriptor = listener.fileno()
            owner = [str(os.getpid())] if ends_with_owner else []
            self.process = subprocess.Popen(  # noqa: S603  # this interpreter and this module
                module_command("fabrictune.trainer_probe.data.service", str(descriptor), *owner),
                stdin=subprocess.PIPE,
                pass_fds=[descriptor],
                process_group=0,  # an interrupt at the terminal goes to the owner only, whose end the loader sees
            )
        assert self.process.stdin is not None, "opened as a pipe"
        self.process.stdin.write(f"{service.to_json()}\n".encode())
        self.process.stdin.flush()

    def close(self) -> None:
        """Wait for the loader to end after its last worker, and kill it after a few seconds."""
        assert self.process.stdin is not None, "opened as a pipe"
        self.process.stdin.close()
        try:
            self.process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Loader:
    """A worker's connection to a loader: batch after batch of one replica's rows. A context manager."""

    def __init__(self, address: str, replica: int, *, timeout_s: float = 60.0) -> None:
        """Connect; raises LoaderError where no loader answers in time, and the loader's error for bad data."""
        self._where = f"loader {address}"
        self._timeout_s = timeout_s
        self._connection = _connect(address, timeout_s)
        self._num_filled = self._num_taken = 0
        self.bytes_read = 0  # by the loader, from the token file, by its latest message
        try:
            message, descriptors = self._receive()
            self._memory, self._slots_NRC = _map(message, descriptors[0], replica)
        except FabrictuneError:
            self._connection.close()
            raise

    def take(self) -> IntArray:
        """Return the next batch's rows (R, C), the worker's own copy; raises FabrictuneError where there is none."""
        while self._num_filled == self._num_taken:
            message, _ = self._receive()
            self._num_filled, self.bytes_read = message["num_filled"], message["bytes_read"]
        rows_RC: IntArray = self._slots_NRC[self._num_taken % len(self._slots_NRC)].astype(np.int64)
        self._num_taken += 1
        try:
            wire.send_message(self._connection, {"num_released": self._num_taken})
        except ConnectionError:
            raise self._gone() from None
        return rows_RC

    def close(self) -> None:
        """Close the connection and release the memory."""
        self._connection.close()
        del self._slots_NRC
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> tuple[dict[str, Any], list[int]]:
        try:
            message, descriptors = wire.receive_message(self._connection)
        except EOFError:
            raise self._gone() from None
        except TimeoutError:
            raise LoaderError(
                Mistake(
                    where=self._where,
                    found=f"no batch within {self._timeout_s:g} s",
                    next_step="check that the token file's storage answers, and that all workers have connected",
                )
            ) from None
        if "error" in message:
            raise wire.decode_error(message)
        return message, descriptors

    def _gone(self) -> LoaderError:
        return LoaderError(
            Mistake(
                where=self._where,
                found="has ended before its workers",
                next_step="find what ended the process: a lack of memory, a truncated token file, or a signal",
            )
        )


def _connect(address: str, timeout_s: float) -> socket.socket:
    """Return a connection to a loader of this user, which may still be starting."""
    deadline_s = time.monotonic() + timeout_s
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(timeout_s)
        try:
            connection.connect(_abstract(address))
            if wire.belongs_to_this_user(connection):
                return connection
            reason = "belongs to another user"
        except ConnectionRefusedError:
            reason = f"does not answer within {timeout_s:g} s"
            if time.monotonic() < deadline_s:
                connection.close()
                time.sleep(_PATIENCE_S)
                continue
        connection.close()
        raise LoaderError(Mistake(where=f"loader {address}", found=reason, next_step="start it first"))


def _map(message: dict[str, Any], descriptor: int, replica: int) -> tuple[mmap.mmap, NDArray[Any]]:
    """Return the memory that a loader shares, and a replica's rows of every slot (N, R, C)."""
    layout = wire.Slots(**{**message, "replicas": tuple(message["replicas"])})
    assert replica in layout.replicas, f"the loader reads for replicas {layout.replicas}"
    try:
        memory = mmap.mmap(descriptor, layout.num_bytes, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)
    return memory, layout.over(memory)[:, layout.replicas.index(replica)]


def _abstract(address: str) -> str:
    """Return a socket address without a file."""
    return f"\0{address}"
