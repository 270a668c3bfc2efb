"""The ideal hash: every bit of the result depends on every bit of the 5-tuple and of the seed.

It models ECMP on switches that hash perfectly; its losses are those of randomness itself.

Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA'14 (SplitMix64's increment), with
the shifts and multipliers of D. Stafford's variant 13 of the MurmurHash3 finaliser, as that generator uses them.
"""

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hashing.five_tuples import FiveTuples

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio, odd
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


def mix_bits(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's output for each state; a permutation of the 64-bit numbers."""
    value = value + _INCREMENT
    value = (value ^ (value >> np.uint64(30))) * _FIRST_FACTOR
    value = (value ^ (value >> np.uint64(27))) * _SECOND_FACTOR
    return value ^ (value >> np.uint64(31))


def hash_mixer(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each flow."""
    addresses_F, ports_F = flows.words()
    return mix_bits(mix_bits(mix_bits(seed_F) ^ addresses_F) ^ ports_F)
