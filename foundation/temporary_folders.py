"""Temporary folders: locked (flock(2)) by the process that made them, so that those of killed processes can be told.

A folder is `PREFIX<8 digits>` in the system's folder for temporary files, of mode 0700. Whoever makes the next one of a
prefix first removes what killed processes of the same user left.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.output_files import claim, remove_abandoned

_TOKEN_BYTES = 4  # short: sockets in it have names of at most 107 bytes


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Give an empty folder that is removed afterwards, by the process that made it; raises OSError."""
    owner = os.getpid()
    with HeldSignals() as signals:
        remove_abandoned(
            Path(tempfile.gettempdir()),
            re.compile(rf"{re.escape(prefix)}[0-9a-f]{{{2 * _TOKEN_BYTES}}}"),
            is_ours=_is_own_folder,
            remove=lambda folder, _: shutil.rmtree(folder, ignore_errors=True),
        )
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


def _is_own_folder(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
