"""The hash functions that a switch may use, by name. One idea a file, listed here.

A function maps the flows' headers and each flow's switch seed to a number of `num_bits` bits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hashing.crc16 import hash_ccitt_false, hash_crc16, hash_crc_ccitt, hash_xmodem
from fabrictune.topology.hashing.crc32 import hash_crc32, hash_crc32_high, hash_crc32_low
from fabrictune.topology.hashing.five_tuples import FiveTuples
from fabrictune.topology.hashing.mixer import hash_mixer
from fabrictune.topology.hashing.toeplitz import hash_toeplitz
from fabrictune.topology.hashing.xor16 import hash_crc_xor, hash_xor16


@dataclass(frozen=True, kw_only=True)
class HashFunction:
    """A hash function and what follows from its kind."""

    hash_flows: Callable[[FiveTuples, NDArray[np.uint64]], NDArray[np.uint64]]
    num_bits: int  # of the result
    is_shifted_by_seed: bool  # another seed changes every hash by one and the same exclusive or


HASHES: Mapping[str, HashFunction] = {
    "mixer": HashFunction(hash_flows=hash_mixer, num_bits=64, is_shifted_by_seed=False),
    "crc32": HashFunction(hash_flows=hash_crc32, num_bits=32, is_shifted_by_seed=True),
    "crc32_low": HashFunction(hash_flows=hash_crc32_low, num_bits=16, is_shifted_by_seed=True),
    "crc32_high": HashFunction(hash_flows=hash_crc32_high, num_bits=16, is_shifted_by_seed=True),
    "crc16": HashFunction(hash_flows=hash_crc16, num_bits=16, is_shifted_by_seed=True),
    "crc16_ccitt_false": HashFunction(hash_flows=hash_ccitt_false, num_bits=16, is_shifted_by_seed=True),
    "crc16_xmodem": HashFunction(hash_flows=hash_xmodem, num_bits=16, is_shifted_by_seed=True),
    "crc_ccitt": HashFunction(hash_flows=hash_crc_ccitt, num_bits=16, is_shifted_by_seed=True),
    "xor16": HashFunction(hash_flows=hash_xor16, num_bits=16, is_shifted_by_seed=True),
    "crc_xor": HashFunction(hash_flows=hash_crc_xor, num_bits=16, is_shifted_by_seed=True),
    "toeplitz": HashFunction(hash_flows=hash_toeplitz, num_bits=32, is_shifted_by_seed=False),
}
