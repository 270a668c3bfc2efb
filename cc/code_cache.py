"""Cache of generated code in the user's cache folder.

It is code that will run, so a file counts only if it and its folder belong to this user, no other user may write to
them, and its digest is right. Folder and file are opened first and checked through their descriptors, so that no user
who may rename a folder above them can exchange them in between. Whatever hinders keeping or finding one costs a second,
not the run.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fabrictune.foundation.caches import cache_folder

MAX_KEPT = 256  # some 10 KB each
MAX_CODE_BYTES = 2**22
_DIGEST_BYTES = hashlib.sha256().digest_size
_OPENED = os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o600  # of a file


def kept_code(key: str) -> bytes | None:
    """Return what was kept under a key, or None."""
    try:
        with _open_folder() as folder:
            descriptor = os.open(f"{key}.o", os.O_RDONLY | os.O_NONBLOCK | _OPENED, dir_fd=folder)
            with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor
                _require_ours_alone(descriptor)
                content = file.read(MAX_CODE_BYTES + _DIGEST_BYTES)
                os.utime(descriptor)
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep_code(key: str, code: bytes) -> None:
    """Keep code under a key, whole or not at all, and forget what was not used for longest."""
    if len(code) > MAX_CODE_BYTES:
        return
    try:
        cache_folder("laws").mkdir(mode=0o700, parents=True, exist_ok=True)
        with _open_folder() as folder:
            _replace(f"{key}.o", hashlib.sha256(code).digest() + code, folder)
            _forget_oldest(folder)
    except OSError:
        return


def _replace(name: str, content: bytes, folder: int) -> None:
    """Write a file of an open folder under another name, then give it its own."""
    half = f".half-{secrets.token_hex(8)}"
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPENED, _MODE, dir_fd=folder)
        with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor
            file.write(content)
        os.replace(half, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(half, dir_fd=folder)


def _forget_oldest(folder: int) -> None:
    names = (name for name in os.listdir(folder) if name.endswith(".o"))
    by_age = sorted(names, key=lambda name: os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime)
    for name in by_age[:-MAX_KEPT]:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


@contextmanager
def _open_folder() -> Iterator[int]:
    """Give the cache's folder as a descriptor; raises OSError where it is not this user's alone."""
    descriptor = os.open(cache_folder("laws"), os.O_RDONLY | os.O_DIRECTORY | _OPENED)
    try:
        _require_ours_alone(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _require_ours_alone(descriptor: int) -> None:
    """Raise PermissionError where another user owns what is open, or may write to it."""
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("another user may write it")
