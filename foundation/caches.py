"""Cache directories: what the project can compute again."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return the folder of one kind of thing, by the XDG base directory specification; it need not exist yet.

    Raises FileNotFoundError where the user has no home and the environment names no other place.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fabrictune" / name
    except RuntimeError:  # a container's user without an entry in /etc/passwd
        raise FileNotFoundError("neither XDG_CACHE_HOME nor a home directory") from None
