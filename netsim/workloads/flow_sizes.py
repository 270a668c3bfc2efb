"""Published distributions of flow sizes, as piecewise linear cumulative distributions.

Source: web search: DCTCP (SIGCOMM'10), Hadoop: Roy et al. (SIGCOMM'15), both in the points that HPCC's public simulator
uses (traffic_gen), so that results can be compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class SizeDistribution:
    """Points of a cumulative distribution: bytes, and the percentage of flows no larger."""

    points: tuple[tuple[float, float], ...]

    @property
    def mean_bytes(self) -> float:
        """Return the mean: each piece's middle, by its share."""
        size, percent = np.array(self.points).T
        return float((np.diff(percent) / 100) @ ((size[1:] + size[:-1]) / 2))

    def sample(self, uniform_N: FloatArray) -> IntArray:
        """Return the sizes of flows drawn by numbers in [0, 1), 1 B or more."""
        size, percent = np.array(self.points).T
        size_N: IntArray = np.rint(np.interp(uniform_N * 100, percent, size)).astype(np.int64)
        return np.maximum(1, size_N)


FLOW_SIZES: Mapping[str, SizeDistribution] = MappingProxyType(
    {
        "web_search": SizeDistribution(
            (
                (0, 0),
                (10_000, 15),
                (20_000, 20),
                (30_000, 30),
                (50_000, 40),
                (80_000, 53),
                (200_000, 60),
                (1_000_000, 70),
                (2_000_000, 80),
                (5_000_000, 90),
                (10_000_000, 97),
                (30_000_000, 100),
            )
        ),
        "hadoop": SizeDistribution(
            (
                (0, 0),
                (100, 1),
                (200, 2),
                (300, 5),
                (350, 15),
                (400, 20),
                (500, 30),
                (600, 40),
                (700, 50),
                (1000, 60),
                (2000, 67),
                (7000, 70),
                (30_000, 72),
                (50_000, 82),
                (80_000, 87),
                (120_000, 90),
                (300_000, 95),
                (1_000_000, 97.5),
                (2_000_000, 99),
                (10_000_000, 100),
            )
        ),
    }
)
