"""The 16-bit CRCs that switch chips offer, by their names in the catalogue.

"CRC16" of a data sheet is most often ARC, of the polynomial 0x8005 (IBM, Bisync); "CCITT" is one of those of the
polynomial 0x1021, which differ in initial value and in the order of bits. A seed is exclusive-ored to the initial
value.

Source: G. Cook, "Catalogue of parametrised CRC algorithms" (reveng.sourceforge.io); check values from there.
"""

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hashing.crc import Crc
from fabrictune.topology.hashing.five_tuples import FiveTuples

ARC = Crc(
    name="CRC-16/ARC", width=16, polynomial=0x8005, initial=0, is_reflected=True, final_xor=0, check=0xBB3D
)  # also CRC-16, CRC-IBM
CCITT_FALSE = Crc(
    name="CRC-16/IBM-3740", width=16, polynomial=0x1021, initial=0xFFFF, is_reflected=False, final_xor=0, check=0x29B1
)  # better known as CRC-16/CCITT-FALSE
XMODEM = Crc(
    name="CRC-16/XMODEM", width=16, polynomial=0x1021, initial=0, is_reflected=False, final_xor=0, check=0x31C3
)
KERMIT = Crc(
    name="CRC-16/KERMIT", width=16, polynomial=0x1021, initial=0, is_reflected=True, final_xor=0, check=0x2189
)  # also CRC-CCITT, as Recommendation V.41 orders the bits


def hash_crc16(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the ARC of each flow's header bytes."""
    return ARC(flows.wire_bytes(), seed_F)


def hash_ccitt_false(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the CCITT-FALSE of each flow's header bytes."""
    return CCITT_FALSE(flows.wire_bytes(), seed_F)


def hash_xmodem(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the XMODEM of each flow's header bytes."""
    return XMODEM(flows.wire_bytes(), seed_F)


def hash_crc_ccitt(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the KERMIT of each flow's header bytes."""
    return KERMIT(flows.wire_bytes(), seed_F)
