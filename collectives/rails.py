"""NIC of each message to another host: the receiver's rail, where the sender's host has one.

Source: NCCL, NCCL_CROSS_NIC and PXN.

Shapes: R ranks, K connections.
"""

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.topology.placement import Placement


def exit_nics(placement: Placement, source_K: IntArray, destination_K: IntArray) -> IntArray:
    """Return the NIC of the GPU that has the receiver's place on the sender's host, or else the sender's own."""
    stride = 1 + int(placement.gpu_R.max(initial=0))
    seat_R = placement.host_R * stride + placement.gpu_R
    order_R = np.argsort(seat_R, kind="stable")
    wanted_K = placement.host_R[source_K] * stride + placement.gpu_R[destination_K]
    place_K = np.minimum(np.searchsorted(seat_R[order_R], wanted_K), len(order_R) - 1)
    found_K = order_R[place_K]
    return np.asarray(placement.nic_R[np.where(seat_R[found_K] == wanted_K, found_K, source_K)])
