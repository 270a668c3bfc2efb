"""Queue pairs between NICs: their numbers, and the UDP source ports that follow from them.

A NIC numbers its ends of queue pairs upwards from `first_qpn` in the order in which they are made, as drivers do, so
the same request always gives the same numbers, and with them the same source ports and paths.

Left out: the gaps that other processes' queue pairs leave in the numbering of a real NIC.
"""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import ArrayLike

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.rocev2 import source_port
from fabrictune.topology.network import QueuePairs

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
    _check_numbers(qpn_Q2)
    return QueuePairs(
        source_nic_Q=source_Q,
        destination_nic_Q=destination_Q,
        source_qpn_Q=qpn_Q2[:, 0],
        destination_qpn_Q=qpn_Q2[:, 1],
        source_port_Q=source_port(qpn_Q2[:, 0], qpn_Q2[:, 1]),
        priority_Q=np.full(len(source_Q), priority, np.int64),
    )


def join_queue_pairs(parts: Sequence[QueuePairs]) -> QueuePairs:
    """Return the queue pairs of all parts, those of a later part numbered above an earlier one's on every NIC.

    A pair whose numbers change gets the source port that follows from the new ones. Raises InputError when numbers run
    out.
    """
    joined: list[QueuePairs] = []
    num_nics = 1 + max((int(nic_Q.max(initial=-1)) for part in parts for nic_Q in _nics(part)), default=-1)
    next_C = np.zeros(num_nics, np.int64)  # above every number taken on a NIC; 0 where none is
    for part in parts:
        lowest = min((int(qpn_Q.min()) for qpn_Q in _numbers(part) if len(qpn_Q)), default=0)
        shift_C = np.maximum(next_C - lowest, 0)
        joined.append(_renumbered(part, shift_C))
        for nic_Q, qpn_Q in zip(_nics(joined[-1]), _numbers(joined[-1]), strict=True):
            np.maximum.at(next_C, nic_Q, qpn_Q + 1)
    return QueuePairs(
        **{
            field.name: np.concatenate([np.zeros(0, np.int64), *(getattr(part, field.name) for part in joined)])
            for field in fields(QueuePairs)
        }
    )


def _renumbered(part: QueuePairs, shift_C: IntArray) -> QueuePairs:
    source_Q, destination_Q = (qpn_Q + shift_C[nic_Q] for nic_Q, qpn_Q in zip(_nics(part), _numbers(part), strict=True))
    _check_numbers(source_Q, destination_Q)
    is_changed_Q = (source_Q != part.source_qpn_Q) | (destination_Q != part.destination_qpn_Q)
    return replace(
        part,
        source_qpn_Q=source_Q,
        destination_qpn_Q=destination_Q,
        source_port_Q=np.where(is_changed_Q, source_port(source_Q, destination_Q), part.source_port_Q),
    )


def _nics(part: QueuePairs) -> tuple[IntArray, IntArray]:
    return part.source_nic_Q, part.destination_nic_Q


def _numbers(part: QueuePairs) -> tuple[IntArray, IntArray]:
    return part.source_qpn_Q, part.destination_qpn_Q


def _check_numbers(*numbers: IntArray) -> None:
    lowest = min((int(qpn_Q.min()) for qpn_Q in numbers if qpn_Q.size), default=0)
    highest = max((int(qpn_Q.max()) for qpn_Q in numbers if qpn_Q.size), default=0)
    if lowest < 0 or highest >= _LIMIT_QPN:
        raise InputError(
            Mistake(
                where="first_qpn",
                found=f"queue-pair numbers from {lowest} to {highest}",
                allowed=f"0 to {_LIMIT_QPN - 1}: a number has 24 bits",
            )
        )


def _occurrence(value_E: IntArray) -> IntArray:
    """Return for each entry how many equal ones stand before it."""
    order_E = np.argsort(value_E, kind="stable")
    sorted_E = value_E[order_E]
    occurrence_E = np.empty_like(value_E)
    occurrence_E[order_E] = np.arange(len(value_E)) - np.searchsorted(sorted_E, sorted_E)
    return occurrence_E
