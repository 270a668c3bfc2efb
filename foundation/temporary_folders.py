"""Temporary folders: locked (flock(2)) by the process that made them, so that those of killed processes can be told.

A folder is `PREFIX<8 digits>` in the system's folder for temporary files, of mode 0700. Whoever makes the next one of a
prefix first removes what killed processes of the same user left.
"""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.output_files import claim

_TOKEN_BYTES = 4  # short: sockets in it have names of at most 107 bytes


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Give an empty folder that is removed afterwards, by the process that made it; raises OSError."""
    owner = os.getpid()
    with HeldSignals() as signals:
        remove_abandoned(prefix)
        unlocked = Path(tempfile.mkdtemp(prefix=f".{prefix}"))  # another name until it is locked: nobody removes it
        descriptor = claim(unlocked)
        folder = unlocked.rename(unlocked.with_name(f"{prefix}{secrets.token_hex(_TOKEN_BYTES)}"))
        try:
            with signals.let_through():
                yield folder
        finally:
            if os.getpid() == owner:  # a forked copy that leaves the block, or drops it, is not done with it
                shutil.rmtree(folder, ignore_errors=True)  # a process that is ending may still write there
            if descriptor is not None:
                os.close(descriptor)


def remove_abandoned(prefix: str) -> None:
    """Remove this user's folders of a prefix that no process holds."""
    pattern = re.compile(rf"{re.escape(prefix)}[0-9a-f]{{{2 * _TOKEN_BYTES}}}")
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [Path(entry) for entry in entries if pattern.fullmatch(entry.name) and _is_own(entry)]
    for folder in found:
        with suppress(OSError):
            if (descriptor := claim(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def _is_own(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except FileNotFoundError:  # its owner has just removed it
        return False
