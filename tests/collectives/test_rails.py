"""Exits of messages: the NIC on the receiver's rail, where the sender's host has one."""

import numpy as np

from fabrictune.collectives.rails import exit_ranks, rail_note
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.placement import Placement


def test_a_host_without_the_receivers_rail_sends_through_the_senders_nic() -> None:
    """Ranks 0 and 1 on the first host, rank 2 on the second, which has no GPU beside its first."""
    placement = Placement(
        layout=ParallelLayout(dp=3),
        host_R=np.array([0, 0, 1]),
        gpu_R=np.array([0, 1, 0]),
        nic_R=np.array([0, 1, 2]),
    )
    source_K, destination_K = np.array([0, 1, 2, 2]), np.array([2, 2, 0, 1])
    assert exit_ranks(placement, source_K, destination_K).tolist() == [0, 0, 2, 2]


def test_pxn_is_a_switch_that_is_said() -> None:
    """Two hosts of two: 0 and 3, and back, change rails; by NVLink or in the fabric. 0 to 2 stays on its rail."""
    placement = Placement(
        layout=ParallelLayout(dp=4),
        host_R=np.array([0, 0, 1, 1]),
        gpu_R=np.array([0, 1, 0, 1]),
        nic_R=np.array([0, 1, 2, 3]),
    )
    source_K, destination_K = np.array([0, 0, 3]), np.array([2, 3, 0])
    assert exit_ranks(placement, source_K, destination_K).tolist() == [0, 1, 2]
    assert exit_ranks(placement, source_K, destination_K, pxn=False).tolist() == [0, 0, 3]
    assert rail_note(placement, source_K, destination_K, pxn=True) == (
        "expansion.pxn: true, as NCCL does: 2 of 3 connections cross NVLink to the NIC on the receiver's rail",
    )
    assert rail_note(placement, source_K, destination_K, pxn=False) == (
        "expansion.pxn: false: 2 of 3 connections leave through their own NIC and cross rails",
    )
    assert rail_note(placement, source_K[:1], destination_K[:1], pxn=True) == ()
