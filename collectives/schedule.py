"""Schedule: who sends which chunk to whom, and after what, in one collective of n members.

A collective cuts its buffer into one chunk a member and moves chunks in steps. A schedule says nothing of bytes, ranks
or time: members are numbered 0 to n - 1 in ring order, and `expansion` puts a schedule on a placement as often as a
trace asks for it. An algorithm is a function from n to a schedule.

Shapes: M messages, n members (and n chunks), D dependencies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foundation.traces import Dependencies

IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The messages of one collective, ordered by step."""

    num_members: int
    step_M: IntArray
    sender_M: IntArray  # member
    receiver_M: IntArray  # member
    chunk_M: IntArray
    is_reduced_M: NDArray[np.bool_]  # the receiver adds the chunk to its own; otherwise it replaces its own
    dependencies: Dependencies  # messages, each to this one's sender, that must have arrived before it leaves

    def __post_init__(self) -> None:
        waiting_D = np.repeat(self.sender_M, np.diff(self.dependencies.offset_N1))
        assert (self.receiver_M[self.dependencies.row_D] == waiting_D).all(), "a message waits for another's arrival"

    def __len__(self) -> int:
        return len(self.sender_M)


def chunk_sizes(num_bytes: int | IntArray, num_chunks: int) -> IntArray:
    """Return the bytes of each chunk, shape (..., num_chunks): as equal as can be, the larger ones first.

    A buffer of fewer bytes than chunks leaves the last chunks empty.
    """
    size, rest = np.divmod(np.asarray(num_bytes, np.int64)[..., None], num_chunks)
    return np.asarray(size + (np.arange(num_chunks) < rest), np.int64)
