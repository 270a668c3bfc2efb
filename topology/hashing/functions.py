"""The hash functions that a switch may use, by name. One idea a file, listed here; others may be added as `HASH`.

A function maps the flows' headers and each flow's switch seed to a number of `num_bits` bits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.extensions.guards import place_of
from fabrictune.foundation.extensions.kinds import Kind
from fabrictune.foundation.extensions.tables import Table
from fabrictune.foundation.seeds import stream
from fabrictune.topology.hashing.crc16 import hash_ccitt_false, hash_crc16, hash_crc_ccitt, hash_xmodem
from fabrictune.topology.hashing.crc32 import hash_crc32, hash_crc32_high, hash_crc32_low
from fabrictune.topology.hashing.five_tuples import HEADER_FIELDS, FiveTuples
from fabrictune.topology.hashing.mixer import hash_mixer
from fabrictune.topology.hashing.toeplitz import hash_toeplitz
from fabrictune.topology.hashing.xor16 import hash_crc_xor, hash_xor16


@dataclass(frozen=True, kw_only=True)
class HashFunction:
    """A hash function and what follows from its kind."""

    hash_flows: Callable[[FiveTuples, NDArray[np.uint64]], NDArray[np.uint64]]
    num_bits: int  # of the result
    is_shifted_by_seed: bool  # another seed changes every hash by one and the same exclusive or


NUM_TRIED = 256  # random headers that a function from outside is checked on


def _check_hash(function: HashFunction) -> Iterator[Mistake]:
    """Yield how a function breaks what its entry claims."""
    where = place_of(function.hash_flows)
    if not 1 <= function.num_bits <= 64:
        yield Mistake(where=where, found=f"num_bits={function.num_bits}", allowed="1 to 64")
        return
    draw = stream(0, "check of a hash function").integers
    source_F, destination_F, port_F, qpn_F = (draw(2**bits, size=NUM_TRIED) for bits in (32, 32, 16, 24))
    flows = FiveTuples(
        source_ipv4_F=source_F,
        destination_ipv4_F=destination_F,
        source_port_F=port_F,
        destination_qpn_F=qpn_F,
        fields=HEADER_FIELDS,
    )
    seeds = [np.full(NUM_TRIED, seed, np.uint64) for seed in (0, 11, 0x9E3779B97F4A7C15)]
    hashes = [function.hash_flows(flows, seed_F) for seed_F in seeds]
    first: object = hashes[0]
    if not isinstance(first, np.ndarray) or first.dtype != np.uint64 or first.shape != (NUM_TRIED,):
        found = f"{first.dtype}{list(first.shape)}" if isinstance(first, np.ndarray) else type(first).__name__
        yield Mistake(where=where, found=f"{found} for {NUM_TRIED} flows", allowed=f"uint64[{NUM_TRIED}]")
        return
    if (used := max(int(value_F.max()) for value_F in hashes).bit_length()) > function.num_bits:
        yield Mistake(where=where, found=f"a hash of {used} bits", allowed=f"{function.num_bits}, its num_bits")
    if function.is_shifted_by_seed and any(len(np.unique(first ^ other)) > 1 for other in hashes[1:]):
        found = "seeds that change hashes by different values, with is_shifted_by_seed=True"
        yield Mistake(where=where, found=found, next_step="set is_shifted_by_seed=False")


HASH = Kind(
    what="hash function", group="fabrictune.hashes", value_type=HashFunction, attribute="HASH", check=_check_hash
)

_OWN = {
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

HASHES = Table(HASH, _OWN)
