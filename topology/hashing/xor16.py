"""Exclusive-or folding: the header's 16-bit words, exclusive-ored into one. Cheap, and the weakest of all.

Fields that change together cancel: two queue pairs whose addresses and ports differ in the same bits share a path. It
mixes nothing, so the low bits of the index are those of addresses and ports.

Left out: the narrower foldings (to 1, 2, 4 or 8 bits) that chips combine with CRCs, but for `crc_xor`'s.
"""

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hashing.crc16 import hash_crc16
from fabrictune.topology.hashing.five_tuples import FiveTuples


def hash_xor16(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each flow's header folded to 16 bits, exclusive-ored with the low 16 bits of the seed."""
    addresses_F, ports_F = flows.words()
    folded_F = addresses_F ^ ports_F
    folded_F ^= folded_F >> np.uint64(32)
    folded_F ^= folded_F >> np.uint64(16)
    return (folded_F ^ seed_F) & np.uint64(0xFFFF)


def hash_crc_xor(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the upper 8 bits of a 16-bit CRC, and below them the header folded to 8 bits."""
    folded_F = hash_xor16(flows, seed_F)
    folded_F ^= folded_F >> np.uint64(8)
    return (hash_crc16(flows, seed_F) & np.uint64(0xFF00)) | (folded_F & np.uint64(0xFF))
