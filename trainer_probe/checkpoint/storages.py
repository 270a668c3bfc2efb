"""Storages by path or URL: a folder of this machine, of its memory (/dev/shm), or what fsspec can open."""

from urllib.parse import urlsplit

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.checkpoint.storage import Storage


def open_storage(url: str, *, where: str = "storage") -> Storage:
    """Return the storage of a path or URL; nothing is made there before the first write.

    Raises InputError for a URL that cannot be used, UnavailableError where a package for it is missing.
    """
    parts = urlsplit(url)
    if not url or "\0" in url:
        raise InputError(Mistake(where=where, found=repr(url), allowed="a folder, or a URL such as s3://bucket/prefix"))
    if parts.scheme in ("", "file"):
        from fabrictune.trainer_probe.checkpoint.local_storage import LocalStorage

        return LocalStorage(parts.path if parts.scheme else url)
    from fabrictune.trainer_probe.checkpoint.remote_storage import RemoteStorage

    return RemoteStorage(url, where=where)
