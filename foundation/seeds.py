"""Independent random streams from one seed.

A stream is named by what it is for (`stream(seed, "workload", "permutation")`), so that adding a consumer never shifts
another's numbers. Streams are counter based (Philox); the name is hashed into the key.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import hashlib

import numpy as np


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator of the stream `name` under `seed` (0 to 2**63 - 1)."""
    return np.random.Generator(np.random.Philox(key=stream_key(seed, *name)))


def stream_key(seed: int, *name: str | int) -> int:
    """Return the 128-bit key of the stream `name`, for engines that draw their own numbers."""
    assert 0 <= seed < 2**63, "a seed is a whole number from 0 to 2**63 - 1"
    assert all(type(part) in (int, str) for part in name), "a stream is named by plain text and whole numbers"
    text = repr((int(seed), *name))  # distinguishes 1 from "1", and ("a", "b") from ("ab",)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
