"""The Toeplitz hash: each set bit of the header adds (exclusive or) the 32 bits of a key that begin at its place.

It is what NICs spread packets over cores with; some switches and load balancers use it too. The seed is the key: seed 0
is the key of the verification suite, another seed draws a key of its own, which is a different linear map and not a
shift of the same one.

Source: Microsoft, "RSS hashing functions" and "Verifying the RSS hash calculation" (Windows driver documentation).
Left out: the protocol, which its input does not have.
"""

import numpy as np
from numpy.typing import NDArray

from fabrictune.topology.hashing.five_tuples import FiveTuples
from fabrictune.topology.hashing.mixer import mix_bits

KEY_WORDS = 5  # 40 bytes
VERIFICATION_KEY = np.array(
    [0x6D5A56DA255B0EC2, 0x4167253D43A38FB0, 0xD0CA2BCBAE7B30B4, 0x77CB2DA38030F20C, 0x6A42B73BBEAC01FA], np.uint64
)
_HEADER_WITHOUT_PROTOCOL = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15)


def toeplitz(bytes_FB: NDArray[np.uint8], seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the 32-bit hash of each row of at most 36 bytes, with the key of its seed."""
    seed_K, key_F = np.unique(seed_F, return_inverse=True)
    tables = _contributions(_keys(seed_K), bytes_FB.shape[1])
    result_F = np.zeros(len(bytes_FB), np.uint32)
    for place, column_F in enumerate(bytes_FB.T):
        result_F ^= tables[2 * place].ravel()[key_F * 16 + (column_F >> 4)]
        result_F ^= tables[2 * place + 1].ravel()[key_F * 16 + (column_F & 0xF)]
    return result_F.astype(np.uint64)


def hash_toeplitz(flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hash of each flow's addresses and ports, and of its queue pair where that is chosen."""
    wire_FB = flows.wire_bytes()
    return toeplitz(wire_FB[:, _HEADER_WITHOUT_PROTOCOL[: wire_FB.shape[1] - 1]], seed_F)


def _keys(seed_K: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the key of each seed as 64-bit words, shape (K, KEY_WORDS)."""
    drawn_KW = mix_bits(mix_bits(seed_K)[:, None] ^ np.arange(KEY_WORDS, dtype=np.uint64))
    return np.where(seed_K[:, None] == 0, VERIFICATION_KEY, drawn_KW)


def _contributions(key_KW: NDArray[np.uint64], num_bytes: int) -> NDArray[np.uint32]:
    """Return what each half of a byte contributes at each place, shape (2 * num_bytes, K, 16), high halves first."""
    bit_B = np.arange(8 * num_bytes)
    word_B, shift_B = bit_B // 64, (bit_B % 64).astype(np.uint64)
    following_KB = key_KW[:, word_B + 1] >> np.uint64(1) >> (np.uint64(63) - shift_B)
    window_KB = (key_KW[:, word_B] << shift_B | following_KB) >> np.uint64(32)
    window_HK4 = np.moveaxis(window_KB.astype(np.uint32).reshape(len(key_KW), 2 * num_bytes, 4), 1, 0)
    is_set_4V = np.arange(16) >> np.arange(3, -1, -1)[:, None] & 1
    tables = np.zeros((2 * num_bytes, len(key_KW), 16), np.uint32)
    for bit in range(4):
        tables ^= window_HK4[:, :, bit, None] * is_set_4V[bit].astype(np.uint32)
    return tables
