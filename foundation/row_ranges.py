"""Ranges of rows in which long tables are made, read and added up."""

from collections.abc import Iterator

CHUNK_ROWS = 2**18


def ranges(begin: int, end: int, size: int = CHUNK_ROWS) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each range of at most `size` rows, of rows `begin` to `end` - 1."""
    for first in range(begin, end, size):
        yield first, min(first + size, end)
