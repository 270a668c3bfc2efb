"""Recognition of a format by the beginning of a file: a few kilobytes are read, and nothing is parsed."""

import re
from pathlib import Path

from fabrictune.foundation.foreign_files import read_head

HEAD_BYTES = 8192


def begins_with(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Return whether the pattern is found in the file's first HEAD_BYTES; False where it cannot be read."""
    return pattern.search(read_head(path, HEAD_BYTES)) is not None
