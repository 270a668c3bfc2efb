"""CRC-32 over the 5-tuple, whole or one half of it, as many switch chips offer it.

A seed is exclusive-ored to the register's initial value. CRC is linear: another seed changes all hashes by one and the
same exclusive or, so where a switch takes the low bits (a power of two of ports), two switches with different seeds
still split the flows alike. Seeds alone do not cure polarization under this function; the other half, or a rotation,
does.

Source: CRC-32/ISO-HDLC (IEEE 802.3) in the catalogue of parametrised CRC algorithms (reveng.sourceforge.io).
"""

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hashing.crc import Crc
from fabrictune.topology.hashing.five_tuples import FiveTuples

ISO_HDLC = Crc(
    name="CRC-32/ISO-HDLC",
    width=32,
    polynomial=0x04C11DB7,
    initial=0xFFFFFFFF,
    is_reflected=True,
    final_xor=0xFFFFFFFF,
    check=0xCBF43926,
)


def hash_crc32(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the CRC of each flow's header bytes, seeded with the low 32 bits of its switch's seed."""
    return ISO_HDLC(flows.wire_bytes(), seed_F)


def hash_crc32_low(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the low 16 bits of the CRC."""
    return hash_crc32(flows, seed_F) & np.uint64(0xFFFF)


def hash_crc32_high(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the high 16 bits of the CRC."""
    return hash_crc32(flows, seed_F) >> np.uint64(16)
