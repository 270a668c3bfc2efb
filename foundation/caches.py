"""Where the project keeps what it can make again."""

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return the folder of one kind of thing, by the XDG base directory specification; it need not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fabrictune" / name
