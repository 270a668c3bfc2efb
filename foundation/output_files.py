"""Output files: written beside their place and renamed into it, so that a full disk or a kill keeps the earlier file.

A file on its way is `.NAME-<16 digits>.half`, locked (flock(2)) by its writer. What a killed writer left has no lock:
the next writer of the same name removes it.
"""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.held_signals import HeldSignals

DEVICES = (Path("/dev"), Path("/dev/fd"))  # such as /dev/stdout: written as they are
TOKEN_BYTES = 8


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Give a path to write; what is there takes the place of `path` at the block's end, and goes where it fails.

    A link is replaced, never followed. Raises InputError naming `path` where it cannot be written.
    """
    try:
        if path.parent in DEVICES:
            yield path
            return
        _check_place(path)
        with HeldSignals() as signals:
            half, descriptor = _open_half(path)
            try:
                with signals.let_through():
                    yield half
                _keep_mode(path, half)
                half.replace(path)
            finally:
                half.unlink(missing_ok=True)
                os.close(descriptor)
    except OSError as error:
        found = f"cannot be written ({error.strerror or error})"
        raise InputError(Mistake(where=str(path), found=found)) from error


def write_new_file(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, whole or not at all; raises InputError."""
    check_output_file(path)
    if path.exists():
        next_step = "choose another name; nothing was written"
        raise InputError(Mistake(where=str(path), found="a file that exists", next_step=next_step))
    with replaced_file(path) as half:
        half.write_bytes(content)


def check_output_file(path: Path, *, makes_parents: bool = False) -> None:
    """Raise InputError where `path` cannot be written: asked before the work that makes its content.

    With `makes_parents` its writer makes the folders above it.
    """
    if path.parent in DEVICES:
        return
    try:
        _check_place(path)
        if not makes_parents:
            path.parent.stat()
        check_writable(path.parent)
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be written ({error.strerror})")) from error


def check_writable(folder: Path) -> None:
    """Raise OSError where nothing can be made in `folder`, or it cannot be made itself."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, waiting for it; on a file system without locks, go on without."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def claim(path: Path) -> int | None:
    """Return a descriptor of a file or folder, locked; None where another process has it, or nothing can be locked."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_abandoned(
    folder: Path,
    pattern: re.Pattern[str],
    *,
    is_ours: Callable[[Path], bool],
    remove: Callable[[Path, re.Match[str]], None],
) -> None:
    """Remove what killed processes left in a folder: what has a name of the pattern, is ours, and nobody holds."""
    with os.scandir(folder) as entries:
        found = [(Path(entry), match) for entry in entries if (match := pattern.fullmatch(entry.name))]
    for path, match in found:
        with suppress(OSError):  # gone, or a link, or not ours to remove
            if is_ours(path) and (descriptor := claim(path)) is not None:
                try:
                    remove(path, match)
                finally:
                    os.close(descriptor)


def _check_place(path: Path) -> None:
    """Raise OSError where something other than a file or a link is at `path`."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def _open_half(path: Path) -> tuple[Path, int]:
    """Make the file beside `path`, after removing what killed writers left; returns it and its lock."""
    half = path.with_name(f".{path.name}-{secrets.token_hex(TOKEN_BYTES)}.half")
    with locked(path.parent):
        _remove_halves(path)
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return half, descriptor


def _remove_halves(path: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(path.name)}-[0-9a-f]{{{2 * TOKEN_BYTES}}}\.half")
    remove_abandoned(path.parent, pattern, is_ours=Path.is_file, remove=lambda half, _: half.unlink())


def _keep_mode(path: Path, half: Path) -> None:
    """Give the new file the permissions of the one it replaces."""
    with suppress(FileNotFoundError):
        earlier = path.lstat()
        if stat.S_ISREG(earlier.st_mode):
            half.chmod(stat.S_IMODE(earlier.st_mode))
