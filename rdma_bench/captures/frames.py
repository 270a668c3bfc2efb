"""Frames: offsets and lengths of captured frames in their file, a chunk at a time, for any container.

The containers (`pcap`, `pcapng`) find the frames, `packets` reads their headers. Both look at many places at once:
`gather` copies one header from each place into a structured array, whose dtype is the wire format.

Shapes: K frames of a chunk.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray

CHUNK_FRAMES = 2**17  # what is held in memory at once
MAX_FRAME_BYTES = 2**18  # libpcap's own limit; a longer record is damage

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Frames:
    """K frames, in the order of the file."""

    position_K: IntArray  # of the first byte
    captured_bytes_K: IntArray  # of the frame, as many as the file has
    time_ns_K: IntArray  # since 1970
    link_type_K: IntArray  # LINKTYPE_ number of what the frame begins with


def gather(data: Bytes, position_K: IntArray, layout: np.dtype[np.void]) -> NDArray[Any]:
    """Return one header of `layout` from each position, shape (K,).

    A header that would run over the end of the file holds other bytes: it lies in no frame that is there whole.
    """
    last = len(data) - layout.itemsize
    if last < 0:
        return np.zeros(len(position_K), layout)
    at_every_byte = np.ndarray((last + 1,), layout, buffer=data.data, strides=(1,))
    headers: NDArray[Any] = at_every_byte[np.minimum(position_K, last)]
    return headers
