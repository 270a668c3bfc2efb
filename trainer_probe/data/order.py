"""The order of samples: a permutation for each epoch, computed at any place and never stored.

A Feistel network permutes the pairs (left, right) of a square of numbers at least as large as the samples; a result
outside the samples is permuted again until it is inside. So an order of any length takes no memory, and a training
resumes at any place at once. The round function is a hash with a key for each round from the seed and epoch.

Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, sections 4 (walking cycles) and 5
(Feistel on numbers); the hash is the finalizer of splitmix64: Steele et al., OOPSLA 2014.

Shapes: P places.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.seeds import stream

_NUM_ROUNDS = 8
_SMALLEST_SIDE = 8  # of the square: on fewer numbers the rounds have too few ways to differ


class SampleOrder:
    """The sample at each place of an endless series of epochs."""

    def __init__(self, num_samples: int, seed: int) -> None:
        assert 1 <= num_samples < 2**62, "a square of their number fits in 64 bits"
        self.num_samples = num_samples
        self._seed = seed
        self._side = np.uint64(max(_SMALLEST_SIDE, math.isqrt(num_samples - 1) + 1))

    def samples(self, place_P: IntArray) -> IntArray:
        """Return the samples (P) at places, counted from the first epoch's first."""
        epoch_P, within_P = np.divmod(place_P, self.num_samples)
        sample_P = np.empty_like(within_P)
        for epoch in np.unique(epoch_P).tolist():
            is_here_P = epoch_P == epoch
            sample_P[is_here_P] = self._permute(within_P[is_here_P], epoch)
        return sample_P

    def _permute(self, within_P: IntArray, epoch: int) -> IntArray:
        keys = stream(self._seed, "sample order", epoch).integers(2**64, size=_NUM_ROUNDS, dtype=np.uint64)
        value_P = self._rounds(within_P.astype(np.uint64), keys)
        while (is_outside_P := value_P >= self.num_samples).any():
            value_P[is_outside_P] = self._rounds(value_P[is_outside_P], keys)
        return value_P.astype(np.int64)

    def _rounds(self, value_P: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Permute the numbers of the square."""
        left_P, right_P = np.divmod(value_P, self._side)
        for key in keys:
            left_P, right_P = right_P, (left_P + _hash(right_P ^ key) % self._side) % self._side
        return left_P * self._side + right_P


def _hash(value_P: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finalizer of splitmix64, modulo 2**64."""
    value_P = (value_P ^ (value_P >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value_P = (value_P ^ (value_P >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value_P ^ (value_P >> np.uint64(31))
