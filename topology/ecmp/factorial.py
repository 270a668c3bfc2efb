"""Effects of a two-level factorial experiment: what each factor does alone, and what two do beyond the sum.

Every design (each factor low or high) is measured under the same number of seeds. The effect of a factor is the mean of
the designs that have it less the mean of those that do not; the interaction of two is half the change of the one's
effect that the other brings, and so on. Each seed gives one value of each effect, whose spread gives the interval.

Source: Box, Hunter, Hunter, "Statistics for Experimenters", 2nd edition (2005), chapter 5.

Shapes: K factors, D = 2**K designs, S seeds.
"""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.topology.ecmp.estimates import Estimate, estimate_mean

Levels = tuple[bool, ...]  # of each factor: is it high?


def designs(num_factors: int) -> list[Levels]:
    """Return all combinations of levels, all low first, the last factor changing fastest."""
    return list(product((False, True), repeat=num_factors))


def effects(response_DS: FloatArray) -> Iterator[tuple[tuple[int, ...], Estimate]]:
    """Yield each set of factors with its effect on the response of the designs in order: single ones, pairs, ..."""
    num_factors = len(response_DS).bit_length() - 1
    assert len(response_DS) == 2**num_factors, "a response for each design"
    sign_DK = np.where(np.array(designs(num_factors)), 1.0, -1.0)
    for num_others in range(num_factors):
        for factors in combinations(range(num_factors), num_others + 1):
            contrast_D = sign_DK[:, list(factors)].prod(axis=1)
            yield factors, estimate_mean(contrast_D @ response_DS / 2 ** (num_factors - 1))
