"""Exit of each message to another host: the NIC on the receiver's rail, where the sender's host has one.

Its data cross NVLink to the GPU beside that NIC, unless the NIC is the sender's own, too (PXN). Without PXN every
message leaves through the sender's own NIC, and crosses rails in the fabric.
Source: NCCL, NCCL_CROSS_NIC, PXN and NCCL_PXN_DISABLE.

Shapes: R ranks, K connections.
"""

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.topology.placement import Placement


def exit_ranks(placement: Placement, source_K: IntArray, destination_K: IntArray, *, pxn: bool = True) -> IntArray:
    """Return the rank through whose NIC each message leaves, that with the receiver's place on the sender's host.

    It is the sender itself without PXN, and where the job has no such rank, or both have the same NIC.
    """
    return _on_the_receivers_rail(placement, source_K, destination_K) if pxn else source_K


def rail_note(placement: Placement, source_K: IntArray, destination_K: IntArray, *, pxn: bool) -> tuple[str, ...]:
    """Return a note of how messages between hosts change rails, if any do."""
    other_K = _on_the_receivers_rail(placement, source_K, destination_K) != source_K
    if not other_K.any():
        return ()
    how = "cross NVLink to the NIC on the receiver's rail" if pxn else "leave through their own NIC and cross rails"
    setting = "true, as NCCL does" if pxn else "false"
    return (f"expansion.pxn: {setting}: {other_K.sum():,} of {len(other_K):,} connections {how}",)


def _on_the_receivers_rail(placement: Placement, source_K: IntArray, destination_K: IntArray) -> IntArray:
    stride = 1 + int(placement.gpu_R.max(initial=0))
    seat_R = placement.host_R * stride + placement.gpu_R
    order_R = np.argsort(seat_R, kind="stable")
    wanted_K = placement.host_R[source_K] * stride + placement.gpu_R[destination_K]
    place_K = np.minimum(np.searchsorted(seat_R[order_R], wanted_K), len(order_R) - 1)
    found_K = order_R[place_K]
    is_other_K = (seat_R[found_K] == wanted_K) & (placement.nic_R[found_K] != placement.nic_R[source_K])
    return np.where(is_other_K, found_K, source_K)
