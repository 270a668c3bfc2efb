"""Opening files that others wrote: one guard for every reader.

`open_foreign` opens a regular file within a size limit, and nothing else: a pipe may never end, a device has no size.
`read_piped` also reads standard input and a pipe, to their end or to a limit, for what a command prints.
`open_unpacked` unpacks gzip as it is read, and ends in an error once the text outgrows the file MAX_RATIO times.
`read_head` returns how a file begins, for telling formats apart, and b"" for what cannot be opened.

Source: RFC 1952 (gzip); deflate packs at most 1,032 : 1, JSON of profilers about 30 : 1.
"""

import errno
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol

from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake

STANDARD_INPUT = Path("-")
MAX_RATIO = 200  # bytes of text a byte of a packed file
MIN_TEXT_BYTES = 2**20  # that any packed file may hold, whatever its size
SPLIT = "leave out what is not needed, or split it"  # what to do about a file that is too large
MAX_SHOWN = 200  # characters of a foreign value that a message repeats
_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 512  # of a packed head; text before a damaged piece is kept


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, b"" at the end."""


@contextmanager
def open_foreign(path: Path, *, max_bytes: int, error: type[FabrictuneError] = InputError) -> Iterator[BinaryIO]:
    """Open a regular file of at most `max_bytes`; raises `error`."""
    try:
        if not path.exists():
            _refuse(error, path, "no such file", next_step="check the path")
        if not path.is_file():
            _refuse(error, path, "not a file")
        file = _open(path)
    except (OSError, ValueError) as reason:  # ValueError: a NUL in the path
        _refuse(error, path, f"not readable ({getattr(reason, 'strerror', None) or reason})")
    with file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes > max_bytes:
            _refuse(error, path, f"a file of {num_bytes} bytes", allowed=f"at most {max_bytes} bytes", next_step=SPLIT)
        yield file


def read_foreign(path: Path, *, max_bytes: int, error: type[FabrictuneError] = InputError) -> bytes:
    """Return the content of a regular file of at most `max_bytes`; raises `error`."""
    with open_foreign(path, max_bytes=max_bytes, error=error) as file:
        try:
            data = file.read(max_bytes + 1)
        except OSError as reason:
            _refuse(error, path, f"not readable ({reason.strerror})")
    if len(data) > max_bytes:  # it has grown since it was opened, or its system gives no size (/proc)
        _refuse(error, path, f"more than {max_bytes} bytes", allowed=f"at most {max_bytes} bytes", next_step=SPLIT)
    return data


def read_piped(path: Path, *, max_bytes: int, error: type[FabrictuneError] = InputError) -> bytes:
    """Return the content of standard input for `-`, of a pipe until its writer ends it, or of a regular file.

    Raises `error`, also beyond `max_bytes`. Whoever names a pipe waits for its writer.
    """
    try:
        if path == STANDARD_INPUT:
            data = sys.stdin.buffer.read(max_bytes + 1)
        elif path.is_fifo():
            with path.open("rb") as pipe:
                data = pipe.read(max_bytes + 1)
        else:
            return read_foreign(path, max_bytes=max_bytes, error=error)
    except (OSError, ValueError) as reason:  # ValueError: a NUL in the path
        _refuse(error, path, f"not readable ({getattr(reason, 'strerror', None) or reason})")
    if len(data) > max_bytes:
        _refuse(error, path, f"more than {max_bytes} bytes", allowed=f"at most {max_bytes} bytes", next_step=SPLIT)
    return data


def read_head(path: Path, num_bytes: int, *, is_unpacked: bool = False) -> bytes:
    """Return up to `num_bytes` from the file's beginning, b"" where it is no regular file or cannot be read.

    Of a packed file that is cut off or damaged, what comes before the damage is returned.
    """
    try:
        if not path.is_file():
            return b""
        with _open(path) as file:
            head = file.read(num_bytes)
    except OSError:
        return b""
    return _unpacked_head(head, num_bytes) if is_unpacked and head.startswith(_GZIP) else head


def _unpacked_head(packed: bytes, num_bytes: int) -> bytes:
    text, unpacker = b"", zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: with the header of gzip
    for start in range(0, len(packed), _PIECE_BYTES):
        if len(text) >= num_bytes:
            break
        try:
            text += unpacker.decompress(packed[start : start + _PIECE_BYTES], num_bytes - len(text))
        except zlib.error:
            break
    return text


@contextmanager
def open_unpacked(
    path: Path, *, max_bytes: int, max_unpacked_bytes: int | None = None, error: type[FabrictuneError] = InputError
) -> Iterator[Readable]:
    """Open a file, plain or gzip, whose text is at most `max_bytes`; reading raises `error` beyond the limits.

    Text that is unpacked is at most `max_unpacked_bytes`, where that is less.
    """
    with open_foreign(path, max_bytes=max_bytes, error=error) as file:
        limit = max_bytes
        unpacked = _unpacked(file)
        if unpacked is not file:
            most = max_bytes if max_unpacked_bytes is None else min(max_bytes, max_unpacked_bytes)
            limit = min(most, max(MIN_TEXT_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size))
        yield _Bounded(unpacked, path, limit, error)


UNPACKING_ERRORS = (OSError, EOFError, zlib.error)  # what reading a damaged packed file raises


def shown(value: object) -> str:
    """Return the value as a message repeats it: as Python writes it, cut to MAX_SHOWN characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes out
        text = "an integer too long to write"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


class _Bounded:
    """A file that ends in an error where it is longer than it may be."""

    def __init__(self, file: Readable, path: Path, max_bytes: int, error: type[FabrictuneError]) -> None:
        self._file, self._path, self._max_bytes, self._error = file, path, max_bytes, error
        self._left = max_bytes

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size if 0 <= size <= self._left else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            found = f"more than {self._max_bytes} B of text"
            _refuse(self._error, self._path, found, next_step="unpack it and look at it, or record less")
        return data


def _unpacked(file: BinaryIO) -> Readable:
    is_packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if is_packed else file


def _open(path: Path) -> BinaryIO:
    """Open a regular file, without waiting for a writer where it has become a pipe; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file")
    return os.fdopen(descriptor, "rb")


def _refuse(
    error: type[FabrictuneError], path: Path, found: str, *, allowed: str = "", next_step: str = ""
) -> NoReturn:
    raise error(Mistake(where=str(path), found=found, allowed=allowed, next_step=next_step)) from None
