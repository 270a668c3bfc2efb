"""A storage in a folder of this machine.

A file is written beside its place, synchronized to disk, and renamed; then its folder is synchronized. What a killed
writer left is removed with its checkpoint.
"""

import os
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from fabrictune.trainer_probe.checkpoint.storage import Content

_HALF = re.compile(r"\..+-[0-9a-f]{16}\.half")


class LocalStorage:
    """A folder; made by the first write."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()

    @property
    def url(self) -> str:
        """The folder's path."""
        return str(self.folder)

    def write(self, name: str, content: Content) -> int:
        """Write a file, in the place of an earlier one; returns its size."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}-{secrets.token_hex(8)}.half")
        try:
            descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                num_bytes = sum(_write_all(descriptor, memoryview(part)) for part in content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            half.rename(path)
        except BaseException:
            with suppress(OSError):
                half.unlink()
            raise
        _sync(path.parent)
        return num_bytes

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """Return a file's bytes from `begin` up to `end`, or fewer where it ends."""
        descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(begin)
            return file.read() if end is None else file.read(end - begin)

    def names(self) -> tuple[str, ...]:
        """Return the names of files and folders at the top; none where the place does not exist."""
        try:
            return tuple(sorted(path.name for path in self.folder.iterdir()))
        except FileNotFoundError:
            return ()

    def files(self, folder: str) -> Mapping[str, int]:
        """Return the names of a folder's files and their sizes; none where it does not exist."""
        sizes = {}
        try:
            with os.scandir(self.folder / folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # renamed since
                        if entry.is_file(follow_symlinks=False):
                            sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return sizes

    def remove(self, folder: str, names: Iterable[str]) -> None:
        """Remove files of a folder in this order, and halves of killed writers, and then the folder if it is empty."""
        place = self.folder / folder
        halves = [name for name in self.files(folder) if _HALF.fullmatch(name)]
        for name in (*names, *halves):
            (place / name).unlink(missing_ok=True)
        with suppress(OSError):
            place.rmdir()

    def free_bytes(self) -> int | None:
        """Return the space that is left."""
        folder = self.folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize


def _write_all(descriptor: int, content: memoryview) -> int:
    """Write all of a content, which one call need not do; returns its size."""
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])
    return written


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
