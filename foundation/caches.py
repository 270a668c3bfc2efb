"""Cache directories: what the project can compute again."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return the folder of one kind of thing, by the XDG base directory specification; it need not exist yet.

    As there, a relative XDG_CACHE_HOME does not count: what is kept may run, and must not come from where one works.

    Raises FileNotFoundError where the user has no home and the environment names no other place.
    """
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return (named if named.is_absolute() else Path.home() / ".cache") / "fabrictune" / name
    except RuntimeError:  # a container's user without an entry in /etc/passwd
        raise FileNotFoundError("neither XDG_CACHE_HOME nor a home directory") from None
