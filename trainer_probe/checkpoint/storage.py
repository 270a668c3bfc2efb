"""A storage of checkpoints, as writers and readers use it.

A storage has folders of files. A file appears whole or not at all, and is durable when `write` returns. All methods
raise OSError, whatever the library below raises.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

Content = Iterable[bytes | memoryview]


class Storage(Protocol):
    """A place for checkpoints. Names are relative, with at most one `/`."""

    @property
    def url(self) -> str:
        """The place as people see it, without secrets."""

    def write(self, name: str, content: Content) -> int:
        """Write a file, in the place of an earlier one; returns its size."""

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """Return a file's bytes from `begin` up to `end`, or fewer where it ends."""

    def names(self) -> tuple[str, ...]:
        """Return the names of files and folders at the top; none where the place does not exist."""

    def files(self, folder: str) -> Mapping[str, int]:
        """Return the names of a folder's files and their sizes; none where it does not exist."""

    def remove(self, folder: str, names: Iterable[str]) -> None:
        """Remove files of a folder in this order, and then the folder if it is empty; what is gone is passed over."""

    def free_bytes(self) -> int | None:
        """Return the space that is left, None where the place does not tell."""


def without_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
