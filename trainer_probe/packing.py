"""Contents of several ranks in one row of bytes."""

from collections.abc import Mapping

import numpy as np


def pack(contents: Mapping[int, bytes]) -> bytes:
    """Return the number of contents, the rank and size of each, and the contents."""
    entries = np.array([(rank, len(content)) for rank, content in contents.items()], np.int64)
    return b"".join([np.int64(len(contents)).tobytes(), entries.tobytes(), *contents.values()])


def unpack(encoded: bytes) -> dict[int, bytes]:
    """Return the contents that `pack` has packed, whatever follows them."""
    (num_contents,) = np.frombuffer(encoded, np.int64, 1).tolist()
    entries = np.frombuffer(encoded, np.int64, 2 * num_contents, offset=8).reshape(-1, 2).tolist()
    contents, begin = {}, 8 + 16 * num_contents
    for rank, size in entries:
        contents[rank] = encoded[begin : begin + size]
        begin += size
    return contents
