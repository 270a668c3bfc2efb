"""Max-min fair rates: what flows get of the ports they share when none can have more but at a poorer one's cost.

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

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.topology import _fairness
from fabrictune.topology.network import NO_PORT

TOLERANCE = 1e-9  # a port is full, and two rates are equal, to this fraction
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


def bottlenecks(
    port_QH: ArrayLike,
    capacity_bps_P: ArrayLike,
    rate_bps_Q: ArrayLike,
    *,
    weight_Q: ArrayLike | None = None,
) -> IntArray:
    """Return the first port on each flow's path that holds it back, NO_PORT where only its demand does; shape (Q,).

    It is a full port on which no flow has a higher rate for its weight: with one for each flow below its demand, and no
    port above its capacity, rates are max-min fair.
    """
    path_QH1 = np.pad(np.asarray(port_QH, np.int64), ((0, 0), (0, 1)), constant_values=NO_PORT)
    capacity_P = np.asarray(capacity_bps_P, np.float64)
    rate_Q = np.asarray(rate_bps_Q, np.float64)
    level_Q = rate_Q if weight_Q is None else rate_Q / np.asarray(weight_Q)
    flow_X, hop_X = np.nonzero(path_QH1 != NO_PORT)
    port_X = path_QH1[flow_X, hop_X]
    load_P = np.bincount(port_X, rate_Q[flow_X], minlength=len(capacity_P))
    highest_P = np.zeros(len(capacity_P))
    np.maximum.at(highest_P, port_X, level_Q[flow_X])
    is_full_P = load_P >= capacity_P * (1 - TOLERANCE)
    holds_QH1 = np.zeros(path_QH1.shape, bool)
    holds_QH1[flow_X, hop_X] = is_full_P[port_X] & (level_Q[flow_X] >= highest_P[port_X] * (1 - TOLERANCE))
    holds_QH1[:, -1] = True  # found where no port holds the flow
    return np.take_along_axis(path_QH1, holds_QH1.argmax(axis=1)[:, None], axis=1)[:, 0]
