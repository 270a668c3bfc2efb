"""One standard normal number after another, in Python's own numbers: what `normals.py` does in bulk."""

import struct
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist

ROUNDS = 10
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)  # Salmon et al., table 2
WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # of the golden ratio and of the root of 3, less 1
WORD = 2**64


def philox(counter: int, key: int) -> tuple[int, int, int, int]:
    """The four words of a 256-bit counter under a 128-bit key."""
    c0, c1, c2, c3 = ((counter >> 64 * place) % WORD for place in range(4))
    k0, k1 = key % WORD, key >> 64
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = second // WORD ^ c1 ^ k0, second % WORD, first // WORD ^ c3 ^ k1, first % WORD
        k0, k1 = (k0 + WEYL[0]) % WORD, (k1 + WEYL[1]) % WORD
    return c0, c1, c2, c3


def slow_normals(key: int, count: int) -> Iterator[float]:
    """The first numbers of a key's stream; its first block has the counter 1, as in NumPy."""
    for number in range(count):
        block, half = divmod(number, 8)
        yield normal_of(philox(block + 1, key)[half // 2] >> 32 * (half % 2) & 0xFFFFFFFF)


def normal_of(bits: int) -> float:
    """The quantile between the two knots around a probability, with the sign of the highest bit."""
    probability = single(float(bits % 2**31 | 1))  # in units of 2**-32
    octave = probability.hex().partition("p")[2]
    width = 2.0 ** (int(octave) - 7)  # between two knots
    below = probability // width * width
    fraction = (probability - below) / width * 2**16 // 1
    step = single((knot(below + width) - knot(below)) / 2**16)
    distance = single(knot(below) + single(fraction * step))
    return -distance if bits >= 2**31 else distance


@cache
def knot(probability: float) -> float:
    """The distance from the mean of a quantile; one half is the mean."""
    if probability >= 2**31:
        return 0.0
    return single(-NormalDist().inv_cdf(probability / 2**32))


def single(value: float) -> float:
    """The nearest number of single precision."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    return float(rounded)
