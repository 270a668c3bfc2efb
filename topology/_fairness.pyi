"""The compiled water filling (sources in topology/fairness_engine)."""

import numpy as np
from numpy.typing import NDArray

def max_min_rates(
    *,
    port: NDArray[np.int32],
    capacity_bps: NDArray[np.float64],
    demand_bps: NDArray[np.float64],
    weight: NDArray[np.int64],
) -> NDArray[np.float64]: ...
