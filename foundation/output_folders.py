"""Output folders: filled beside their place and put into it in one step; nothing is removed but what we made.

A folder on its way is `.NAME-<16 digits>/new`, locked (flock(2)) by its writer. Where one is replaced, the two change
places by one rename (renameat2(2), RENAME_EXCHANGE): a reader finds the one or the other. A file system without that
takes two renames, the earlier folder kept as `.NAME-<16 digits>/old` between them; the next writer of the same name
puts it back where a kill hit that moment, and removes what else a killed writer left. Writers wait for one another.
"""

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from fabrictune.foundation.errors import FabrictuneError, Mistake, RecordError
from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.output_files import TOKEN_BYTES, check_writable, locked, remove_abandoned

NEW, OLD = "new", "old"
AT_FDCWD = -100
RENAME_EXCHANGE = 2
CANNOT_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
MAX_READS = 100  # of a folder that others keep replacing

Check = Callable[[Path], None]
T = TypeVar("T")


def write_folder(directory: Path, fill: Callable[[Path], None], *, check: Check, durably: bool = False) -> None:
    """Let `fill` write into a new folder, and put that in the place of `directory`.

    `check` raises RecordError where what is at `directory` must not be replaced. With `durably` the folder is on disk
    before it appears and before this returns, and removing litter is the caller's: `remove_litter`. Raises RecordError.
    """
    check_output_folder(directory, check=check)
    if directory.name in ("", ".."):
        directory = directory.resolve()
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(directory, removes_litter=not durably) as scratch:
            new = scratch / NEW
            new.mkdir()
            fill(new)
            if durably:
                _sync(*new.iterdir(), new)
            with locked(directory.parent):
                check(directory)
                _put_in_place(new, directory, scratch / OLD)
            if durably:
                _sync(directory.parent)
    except OSError as error:
        raise _cannot_be_written(directory, error) from error


def check_output_folder(directory: Path, *, check: Check) -> None:
    """Raise RecordError where `directory` cannot be written: asked before the work that makes its content.

    Another writer may replace the folder meanwhile; what is refused is what stays.
    """
    try:
        read_unchanged(directory, check)
        check_writable(directory.parent)
    except OSError as error:
        raise _cannot_be_written(directory, error) from error


def remove_litter(parent: Path, name: str = "") -> None:
    """Remove the folders that killed writers left in `parent`, which is locked: of one name, or of all."""
    pattern = re.compile(rf"\.({re.escape(name) if name else '.+'})-[0-9a-f]{{{2 * TOKEN_BYTES}}}")
    remove_abandoned(
        parent, pattern, is_ours=_is_litter, remove=lambda scratch, match: _discard(scratch, parent / match[1])
    )


def read_unchanged(directory: Path, read: Callable[[Path], T]) -> T:
    """Return what `read` makes of a folder, read again where another took its place meanwhile.

    Raises the errors of `read`; RecordError where the folder never stays as it is.
    """
    for _ in range(MAX_READS):
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)  # keeps its number from being used again
        except OSError:
            return read(directory)
        try:
            value = read(directory)
        except (FabrictuneError, OSError):
            if _is_same(descriptor, directory):
                raise
        else:
            if _is_same(descriptor, directory):
                return value
        finally:
            os.close(descriptor)
    raise RecordError(
        Mistake(where=str(directory), found="replaced again and again", next_step="wait for the runs that write it")
    )


@contextmanager
def _scratch(directory: Path, *, removes_litter: bool) -> Iterator[Path]:
    """Give a locked folder beside `directory`, removed afterwards."""
    scratch = directory.with_name(f".{directory.name}-{secrets.token_hex(TOKEN_BYTES)}")
    with HeldSignals() as signals:
        with locked(directory.parent):
            if removes_litter:
                remove_litter(directory.parent, directory.name)
            scratch.mkdir(mode=0o700)
            descriptor = os.open(scratch, os.O_RDONLY)
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            with signals.let_through():
                yield scratch
        finally:
            _discard(scratch, directory)
            os.close(descriptor)


def _put_in_place(new: Path, directory: Path, old: Path) -> None:
    if not directory.exists():
        new.rename(directory)
    elif not _exchange(new, directory):
        directory.rename(old)
        new.rename(directory)


def _discard(scratch: Path, directory: Path) -> None:
    """Remove a scratch folder; where its writer came no further than the first of two renames, undo that."""
    if (scratch / OLD).exists() and not directory.exists():
        (scratch / OLD).rename(directory)
    shutil.rmtree(scratch, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Let two folders change places in one step; returns whether the system and the file system can."""
    number = renameat2(first, second, RENAME_EXCHANGE)
    if number and number not in CANNOT_EXCHANGE:
        raise OSError(number, os.strerror(number), str(second))
    return not number


def renameat2(first: Path, second: Path, flags: int) -> int:
    """Return the error number of renameat2(2), 0 for none; ENOSYS where the C library lacks it."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return errno.ENOSYS
    return ctypes.get_errno() if call(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), flags) else 0


def _is_litter(scratch: Path) -> bool:
    """Return whether a folder holds only what a writer puts there: no link, no folder but its two, files in these."""
    if scratch.is_symlink() or not scratch.is_dir():
        return False
    halves = list(scratch.iterdir())
    return all(half.name in (NEW, OLD) and not half.is_symlink() and half.is_dir() for half in halves) and all(
        path.is_file() and not path.is_symlink() for half in halves for path in half.iterdir()
    )


def _is_same(descriptor: int, directory: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), directory.stat())
    except OSError:
        return False


def _sync(*paths: Path) -> None:
    """Wait until files and folders are on disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_be_written(directory: Path, error: OSError) -> RecordError:
    return RecordError(Mistake(where=str(directory), found=f"cannot be written ({error.strerror or error})"))
