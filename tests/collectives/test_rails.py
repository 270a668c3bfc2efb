"""Exits of messages: the NIC on the receiver's rail, where the sender's host has one."""

import numpy as np

from fabrictune.collectives.rails import exit_ranks
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
