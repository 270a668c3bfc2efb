"""Cache of generated code in the user's cache folder.

It is code that will run, so a file counts only if it and its folder belong to this user, no other user may write to
them, and its digest is right. Whatever hinders keeping or finding one costs a second, not the run.
"""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from fabrictune.foundation.caches import cache_folder

MAX_KEPT = 256  # some 10 KB each
MAX_CODE_BYTES = 2**22
_DIGEST_BYTES = hashlib.sha256().digest_size


def kept_code(key: str) -> bytes | None:
    """Return what was kept under a key, or None."""
    try:
        path = _folder() / f"{key}.o"
        if not (_is_ours_alone(path.parent) and _is_ours_alone(path)):
            return None
        with path.open("rb") as file:
            content = file.read(MAX_CODE_BYTES + _DIGEST_BYTES)
        os.utime(path)
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep_code(key: str, code: bytes) -> None:
    """Keep code under a key, whole or not at all, and forget what was not used for longest."""
    if len(code) > MAX_CODE_BYTES:
        return
    try:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".half-") as scratch:
            half = Path(scratch, key)
            half.touch(mode=0o600)
            half.write_bytes(hashlib.sha256(code).digest() + code)
            half.replace(folder / f"{key}.o")
        _forget_oldest(folder)
    except OSError:
        return


def _forget_oldest(folder: Path) -> None:
    by_age = sorted(folder.glob("*.o"), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-MAX_KEPT]:
        path.unlink(missing_ok=True)


def _is_ours_alone(path: Path) -> bool:
    status = path.lstat()
    is_writable_by_others = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return status.st_uid == os.geteuid() and not is_writable_by_others and not path.is_symlink()


def _folder() -> Path:
    return cache_folder("laws")
