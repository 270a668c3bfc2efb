"""CRC-32 over the 5-tuple, as many switch chips offer it.

A seed is the register's initial value. CRC is linear: another seed changes all hashes by one and the same exclusive or,
so where a switch takes the low bits (a power of two of ports), two switches with different seeds still split the flows
alike. Seeds alone do not cure polarization under this function.

Source: CRC-32/ISO-HDLC (IEEE 802.3), check value 0xCBF43926 for the nine bytes "123456789".
Left out: the selections and rotations of bits by which chips derive an index from the CRC.
"""

import numpy as np
from numpy.typing import NDArray

from topology.hashing.five_tuples import FiveTuples

_REVERSED_POLYNOMIAL = 0xEDB88320
_ONES = np.uint32(0xFFFFFFFF)


def _make_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & np.uint32(1), table >> np.uint32(1) ^ np.uint32(_REVERSED_POLYNOMIAL), table >> 1)
    return table.astype(np.uint32)


_TABLE = _make_table()


def crc32(bytes_FB: NDArray[np.uint8], seed_F: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the CRC of each row of bytes; seed 0 is the standard CRC-32."""
    register_F = _ONES ^ seed_F
    for column_F in bytes_FB.T:
        register_F = _TABLE[(register_F ^ column_F) & np.uint32(0xFF)] ^ (register_F >> np.uint32(8))
    return register_F ^ _ONES


def hash_crc32(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the CRC of each flow's 13 header bytes, seeded with the low 32 bits of its switch's seed."""
    return crc32(flows.wire_bytes(), seed_F.astype(np.uint32)).astype(np.uint64)
