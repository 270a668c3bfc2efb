"""
Max-min fair rates, compiled; fabrictune.topology.fairness is its face.
"""

import numpy
from numpy.typing import NDArray

def max_min_rates(
    *,
    port: NDArray[numpy.int32],
    capacity_bps: NDArray[numpy.float64],
    demand_bps: NDArray[numpy.float64],
    weight: NDArray[numpy.int64],
) -> NDArray[numpy.float64]: ...
