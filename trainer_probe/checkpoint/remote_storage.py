"""A storage behind an fsspec URL, such as an object store.

An object appears when its upload is committed; one that fails is discarded. Listings are not kept from one call to the
next. The file system takes its settings and credentials from its usual environment (AWS_ENDPOINT_URL and others).

Left out: stores that list an object only some time after it was written.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.checkpoint.storage import Content, without_secrets

T = TypeVar("T")


class RemoteStorage:
    """A prefix of a file system of fsspec's."""

    def __init__(self, url: str, *, where: str = "storage") -> None:
        """Open the file system; raises InputError for an unknown kind, UnavailableError without fsspec."""
        require_extra("fsspec", extra="train", where=where)
        import fsspec

        self._url = without_secrets(url)
        try:
            self._system: Any
            self._system, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            reason = str(error).splitlines()[0].replace(url, self._url)
            allowed = "a folder, or a URL of a kind that fsspec knows, its package installed"
            raise InputError(Mistake(where=where, found=f"{self._url}: {reason}", allowed=allowed)) from None
        self._root = root.rstrip("/")

    @property
    def url(self) -> str:
        """The URL, without user and password."""
        return self._url

    def write(self, name: str, content: Content) -> int:
        """Write a file, in the place of an earlier one; returns its size."""

        def upload() -> int:
            self._system.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            file = self._system.open(self._path(name), "wb", autocommit=False)
            try:
                num_bytes = sum(int(file.write(part)) for part in content)
                file.close()
                file.commit()
            except BaseException:
                file.closed = True  # or it would be uploaded when it is dropped
                with suppress(Exception):
                    file.discard()
                raise
            return num_bytes

        return self._call(upload)

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes:
        """Return a file's bytes from `begin` up to `end`, or fewer where it ends."""
        content: bytes = self._call(lambda: self._system.cat_file(self._path(name), start=begin, end=end))
        return content

    def names(self) -> tuple[str, ...]:
        """Return the names of files and folders at the top; none where the place does not exist."""
        return tuple(sorted(self._list(self._root)))

    def files(self, folder: str) -> Mapping[str, int]:
        """Return the names of a folder's files and their sizes; none where it does not exist."""
        found = self._list(self._path(folder))
        return {name: int(entry["size"]) for name, entry in found.items() if entry["type"] == "file"}

    def remove(self, folder: str, names: Iterable[str]) -> None:
        """Remove files of a folder in this order, and then the folder if it is empty."""
        for name in names:
            with suppress(FileNotFoundError):
                self._call(partial(self._system.rm_file, self._path(f"{folder}/{name}")))
        with suppress(OSError):
            if not self._list(self._path(folder)):
                self._call(lambda: self._system.rmdir(self._path(folder)))

    def free_bytes(self) -> int | None:
        """Return None: object stores do not tell."""
        return None

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _list(self, path: str) -> dict[str, Any]:
        try:
            entries = self._call(lambda: self._system.ls(path, detail=True))
        except FileNotFoundError:
            return {}
        found = {entry["name"].rstrip("/").rpartition("/")[2]: entry for entry in entries}
        found.pop(path.rpartition("/")[2] if not entries else "", None)
        return found

    def _call(self, act: Callable[..., T]) -> T:
        """Return what a function returns; raises OSError for whatever it raises."""
        try:
            return act()
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{self._url}: {type(error).__name__}: {error}") from error
