"""Max-min fair rates of flows that share ports: none can rise but at the cost of a flow with less.

All flows rise together, each in proportion to its weight, until a port is full or a flow has what it asks for; those
stop there, and the others rise on. The result is the only one in which every flow that gets less than its demand has a
*bottleneck*: a full port on its path where no flow has more for its weight. An ideal congestion control comes to rest
there.

The work is in C++ (`topology/fairness_engine`): each flow stops once and each port is looked at again only when it
comes first, O(flows x hops x log ports). `topology/reference/fairness.py` is the slow truth, in exact fractions.

Source: Bertsekas, Gallager, "Data Networks", 2nd edition (1992), section 6.5.2.

Shapes: Q flows, H hops, P ports.
"""

import numpy as np
from numpy.typing import ArrayLike

from fabrictune.foundation.arrays import FloatArray
from fabrictune.topology import _fairness
from fabrictune.topology.network import NO_PORT

_MAX_WEIGHT = 2**53  # of all flows together: up to here every sum is exact


def max_min_rates(
    port_QH: ArrayLike,
    capacity_bps_P: ArrayLike,
    demand_bps_Q: ArrayLike | None = None,
    *,
    weight_Q: ArrayLike | None = None,
) -> FloatArray:
    """Return the rate of each flow in bps, shape (Q,).

    `port_QH` lists the ports of each path, NO_PORT anywhere for none. A demand caps a flow's own rate; it may be
    infinite, and must be finite for a flow without any port. Weights are whole numbers from 1, 1 where not given: a
    flow of weight 2 gets what two flows of weight 1 get. The order of flows and ports changes no bit of the result.
    """
    paths_QH = np.ascontiguousarray(port_QH, np.int32)
    capacities_P = np.ascontiguousarray(capacity_bps_P, np.float64)
    num_flows = len(paths_QH)
    demands_Q = np.full(num_flows, np.inf) if demand_bps_Q is None else np.ascontiguousarray(demand_bps_Q, np.float64)
    weights_Q = np.ones(num_flows, np.int64) if weight_Q is None else np.ascontiguousarray(weight_Q, np.int64)
    assert paths_QH.ndim == 2, "a row of ports for each flow"
    assert demands_Q.shape == weights_Q.shape == (num_flows,), "a demand and a weight for each flow"
    assert ((paths_QH >= NO_PORT) & (paths_QH < len(capacities_P))).all(), "a capacity for each port"
    assert ((capacities_P >= 0) & np.isfinite(capacities_P)).all(), "capacities are zero or more, and finite"
    assert (demands_Q >= 0).all(), "demands are zero or more"
    assert (weights_Q >= 1).all(), "weights are 1 or more"
    assert weights_Q.sum(dtype=np.float64) * max(1, paths_QH.shape[1]) < _MAX_WEIGHT, "weights that add up exactly"
    assert (np.isfinite(demands_Q) | (paths_QH != NO_PORT).any(axis=1)).all(), "a flow without port has a demand"
    return _fairness.max_min_rates(port=paths_QH, capacity_bps=capacities_P, demand_bps=demands_Q, weight=weights_Q)
