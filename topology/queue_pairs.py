"""Queue pairs between NICs: their numbers, and the UDP source ports that follow from them.

A NIC numbers its ends of queue pairs upwards from `first_qpn` in the order in which they are made, as drivers do, so
the same request always gives the same numbers, and with them the same source ports and paths.

Left out: the gaps that other processes' queue pairs leave in the numbering of a real NIC.
"""

import numpy as np
from numpy.typing import ArrayLike

from foundation.errors import InputError, Mistake
from foundation.rocev2 import source_port
from topology.network import IntArray, QueuePairs

FIRST_QPN = 0x100  # the lowest numbers are reserved for management
_LIMIT_QPN = 2**24
_NUM_PRIORITIES = 8


def make_queue_pairs(
    source_nic_Q: ArrayLike,
    destination_nic_Q: ArrayLike,
    *,
    priority: int = 3,
    first_qpn: int = FIRST_QPN,
) -> QueuePairs:
    """Return one queue pair per row; no two ends on a NIC share a number. Raises InputError when numbers run out."""
    source_Q = np.array(source_nic_Q, dtype=np.int64, ndmin=1)
    destination_Q = np.array(destination_nic_Q, dtype=np.int64, ndmin=1)
    assert source_Q.shape == destination_Q.shape, "one destination for each source"
    if not 0 <= priority < _NUM_PRIORITIES:
        raise InputError(Mistake(where="priority", found=f"priority {priority}", allowed="0 to 7 (802.1p)"))
    nic_Q2 = np.stack([source_Q, destination_Q], axis=1)
    qpn_Q2 = first_qpn + _occurrence(nic_Q2.ravel()).reshape(nic_Q2.shape)
    if qpn_Q2.max(initial=first_qpn) >= _LIMIT_QPN or first_qpn < 0:
        raise InputError(
            Mistake(
                where="first_qpn",
                found=f"queue-pair numbers from {first_qpn} to {qpn_Q2.max(initial=first_qpn)}",
                allowed=f"0 to {_LIMIT_QPN - 1}: a number has 24 bits",
            )
        )
    return QueuePairs(
        source_nic_Q=source_Q,
        destination_nic_Q=destination_Q,
        source_qpn_Q=qpn_Q2[:, 0],
        destination_qpn_Q=qpn_Q2[:, 1],
        source_port_Q=source_port(qpn_Q2[:, 0], qpn_Q2[:, 1]),
        priority_Q=np.full(len(source_Q), priority, np.int64),
    )


def _occurrence(value_E: IntArray) -> IntArray:
    """Return for each entry how many equal ones stand before it."""
    order_E = np.argsort(value_E, kind="stable")
    sorted_E = value_E[order_E]
    occurrence_E = np.empty_like(value_E)
    occurrence_E[order_E] = np.arange(len(value_E)) - np.searchsorted(sorted_E, sorted_E)
    return occurrence_E
