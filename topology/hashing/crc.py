"""Cyclic redundancy checks of any catalogued kind, over many short messages at once.

A CRC is linear over exclusive or: the check of a message is the exclusive or of what each of its bytes contributes at
its place. A table a place holds the 256 contributions, so that a message of 13 bytes costs 13 independent look-ups. The
register's initial value is the same as that value laid over the first bytes of the message; a seed changes it.

Source: R. N. Williams, "A painless guide to CRC error detection algorithms" (1993), whose parameters the entries use;
G. Cook, "Catalogue of parametrised CRC algorithms" (reveng.sourceforge.io).
Left out: widths other than whole bytes, and kinds that reflect their input only.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Crc:
    """One entry of the catalogue."""

    name: str
    width: int  # bits, 16 or 32
    polynomial: int  # without its highest term, most significant bit first
    initial: int
    is_reflected: bool  # bytes enter, and the register leaves, with the least significant bit first
    final_xor: int
    check: int  # of the nine bytes "123456789"

    def __call__(self, bytes_FB: NDArray[np.uint8], seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the CRC of each row of bytes, at least as many as the register has; seed 0 gives the catalogue's."""
        num_bytes = bytes_FB.shape[1]
        assert num_bytes * 8 >= self.width, "the register is laid over the first bytes"
        register_F = (seed_F & np.uint64(2**self.width - 1)) ^ np.uint64(self.initial)
        result_F = np.full(len(bytes_FB), self.final_xor, np.uint64)
        for place, (column_F, table) in enumerate(zip(bytes_FB.T, _contributions(self, num_bytes), strict=True)):
            if 8 * place < self.width:
                shift = 8 * place if self.is_reflected else self.width - 8 * (place + 1)
                column_F = column_F ^ (register_F >> np.uint64(shift)).astype(np.uint8)
            result_F ^= table[column_F]
        return result_F


@cache
def _contributions(crc: Crc, num_bytes: int) -> NDArray[np.uint64]:
    """Return what each byte contributes at each place of a message, shape (num_bytes, 256)."""
    last = _advance(crc, np.zeros(256, np.uint64), np.arange(256, dtype=np.uint64))
    tables = [last]
    for _ in range(num_bytes - 1):
        tables.append(_advance(crc, tables[-1], np.zeros(256, np.uint64)))
    return np.stack(tables[::-1])


def _advance(crc: Crc, register: NDArray[np.uint64], byte: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each register after one more byte, bit by bit."""
    if crc.is_reflected:
        polynomial = np.uint64(int(f"{crc.polynomial:0{crc.width}b}"[::-1], 2))
        register = register ^ byte
        for _ in range(8):
            register = register >> np.uint64(1) ^ (register & np.uint64(1)) * polynomial
        return register
    top, mask = np.uint64(crc.width - 1), np.uint64(2**crc.width - 1)
    register = register ^ byte << np.uint64(crc.width - 8)
    for _ in range(8):
        register = (register << np.uint64(1) & mask) ^ (register >> top) * np.uint64(crc.polynomial)
    return register
