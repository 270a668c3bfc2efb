"""The shared key of a job: a file that only its owner can read.

A key is 32 random bytes, written as 64 hexadecimal digits.
"""

import os
import secrets
import stat
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake

KEY_BYTES = 32
_MAX_FILE_BYTES = 1024


def make_key(path: Path) -> bytes:
    """Write a new key to a new file of mode 0600 and return it; raises InputError where the file is there already."""
    key = secrets.token_bytes(KEY_BYTES)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise InputError(
            Mistake(where=str(path), found="is there already", next_step="use it, or remove it first")
        ) from error
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be written ({error.strerror})")) from error
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{key.hex()}\n")
        file.flush()
        os.fsync(descriptor)
    return key


def read_key(path: Path) -> bytes:
    """Return the key of a file; raises InputError where it is no key, or others than its owner can read it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be read ({error.strerror})")) from error
    with os.fdopen(descriptor, "rb") as file:
        _check_owner(path, os.fstat(descriptor))
        content = file.read(_MAX_FILE_BYTES)
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        found = "holds no key"  # the content is not shown: it may be a damaged one
        raise InputError(Mistake(where=str(path), found=found, allowed=f"{2 * KEY_BYTES} hexadecimal digits"))
    return key


def _check_owner(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise InputError(Mistake(where=str(path), found="not a regular file"))
    if found.st_uid not in (os.geteuid(), 0):
        raise InputError(
            Mistake(where=str(path), found=f"belongs to user {found.st_uid}", allowed="a file of this user or of root")
        )
    if found.st_mode & 0o077:
        raise InputError(
            Mistake(
                where=str(path),
                found=f"mode {stat.S_IMODE(found.st_mode):04o}: others can read it",
                allowed="mode 0600 or 0400",
                next_step=f"chmod 600 {path}; make a new key if others may have read this one",
            )
        )
