"""Recognition of a format by the beginning of a file: a few kilobytes are read, and nothing is parsed."""

import re
from pathlib import Path

HEAD_BYTES = 8192


def begins_with(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Return whether the pattern is found in the file's first HEAD_BYTES; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return pattern.search(file.read(HEAD_BYTES)) is not None
    except OSError:
        return False
