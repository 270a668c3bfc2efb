"""Standard normal numbers by their place in a stream, the same bits on every machine and in every order.

Number i of a stream is a function of its 32 random bits, which are half of one word of Philox4x64-10. One bit is the
sign. The others are a probability p below 1/2, whose quantile is interpolated linearly between knots: 128 in each
octave of p, so that the floating-point form of p is itself the address, its upper bits of the knot and its lower bits
of the place between two knots.

Integers and single-precision products and sums have one result on every machine that follows IEEE 754. The knots are
computed in double precision with the machine's logarithm and rounded to single precision; none is so near to a tie
that a logarithm wrong in its last digits would round it otherwise.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; Cheung, Lee, Luk and Villasenor,
"Hardware generation of arbitrary random number distributions from uniform distributions via the inversion method",
IEEE Transactions on VLSI Systems 15(8), 2007, for the segments.
Left out: numbers beyond 6.3 standard deviations, of which a complete normal distribution has one in 3 billion.

Shapes: K knots, N numbers.
"""

from collections.abc import Iterable
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

NUMBERS_PER_BLOCK = 8  # of Philox: four words of 64 bits
KNOTS_PER_OCTAVE = 128
OCTAVES = 31
_FRACTION_BITS = 16  # of a float's 23: the 7 above them count an octave's knots
_FRACTION = np.int32(2**_FRACTION_BITS - 1)
_BITS_OF_ONE = np.int32(0x3F800000)  # 1.0 in single precision
_SIGN = np.uint32(2**31)


def standard_normals(key: int, first: int, count: int) -> NDArray[np.float32]:
    """Return the numbers `first` to `first + count - 1` of the stream of a 128-bit key, N."""
    return to_normals(random_bits(key, [(first, count)]))


def random_bits(key: int, runs: Iterable[tuple[int, int]]) -> NDArray[np.uint32]:
    """Return the 32 random bits of each number of these ranges of a stream, by first number and length, N."""
    source, next_block = np.random.Philox(key=key, counter=0), 0
    drawn: list[NDArray[np.uint32]] = []
    for first, count in runs:
        block, skipped = divmod(first, NUMBERS_PER_BLOCK)
        num_blocks = -(-(skipped + count) // NUMBERS_PER_BLOCK)
        words = source.advance(block - next_block).random_raw(num_blocks * 4)  # a sixth of a new source's time
        next_block = block + num_blocks
        drawn.append(words.astype("<u8", copy=False).view("<u4")[skipped : skipped + count])
    return drawn[0] if len(drawn) == 1 else np.concatenate(drawn)


def to_normals(bits_N: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return the normal number of each 32 random bits, N."""
    knot_K, step_K = quantile_knots()
    odd_N = (bits_N & ~_SIGN) | np.uint32(1)  # p in units of 2**-32
    probability_N = odd_N.view(np.int32).astype(np.float32)
    address_N = probability_N.view(np.int32) - _BITS_OF_ONE
    fraction_N = (address_N & _FRACTION).astype(np.float32)
    address_N >>= _FRACTION_BITS
    fraction_N *= step_K.take(address_N)
    fraction_N += knot_K.take(address_N)
    fraction_N.view(np.uint32)[...] |= bits_N & _SIGN
    return fraction_N


@cache
def quantile_knots() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the distances from the mean at the knots, and of each the step to the next by unit of fraction, both K.

    Knot k is at the probability of the float at the address k: 2**-32 at first, 1/2 at last.
    """
    knot_K = np.array(exact_knots(), np.float64).astype(np.float32)
    next_K = np.append(knot_K[1:], knot_K[-1])
    return knot_K, ((next_K.astype(np.float64) - knot_K) / 2**_FRACTION_BITS).astype(np.float32)


def exact_knots() -> list[float]:
    """Return the distances from the mean at the knots in double precision, K."""
    quantile = NormalDist().inv_cdf
    lower = [
        (1 + number / KNOTS_PER_OCTAVE) * 2.0 ** (octave - 32)
        for octave in range(OCTAVES)
        for number in range(KNOTS_PER_OCTAVE)
    ]
    return [-quantile(probability) for probability in lower] + [0.0]
