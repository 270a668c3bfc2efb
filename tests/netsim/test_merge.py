"""Several workloads side by side: each is what it was alone."""

from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.workloads.incast import IncastSpec, make_incast
from fabrictune.netsim.workloads.merge import join
from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation
from fabrictune.netsim.workloads.table import GeneratedTraffic
from tests.netsim.conftest import one_switch, traffic_of


def chain() -> GeneratedTraffic:
    """Two transfers of one operation over one queue pair, the second after the first."""
    queue_pairs, traffic = make_incast(IncastSpec(senders=1, message_bytes=100), one_switch(4), 0)
    twice = np.zeros(2, np.int64)
    columns: dict[str, Any] = {
        name: np.repeat(getattr(traffic, name), 2) for name in ("source_N", "destination_N", "medium_N")
    }
    return queue_pairs, TrafficTrace(
        **columns,
        qp_N=twice,
        bytes_N=np.array([100, 200]),
        start_ps_N=twice,
        delay_ps_N=np.array([0, 7]),
        operation_N=twice,
        dependencies=Dependencies.from_lists([[], [0]]),
    )


def test_rows_of_a_later_part_point_at_its_own() -> None:
    """Three of the incast stand before the chain: its rows are 3 and 4, its queue pair is 3."""
    fabric = one_switch(4)
    incast = make_incast(IncastSpec(senders=3, message_bytes=500), fabric, 0)
    queue_pairs, traffic = join([incast, chain()], start_ps=[0, 1000])
    assert len(queue_pairs) == 4
    assert traffic.qp_N.tolist() == [0, 1, 2, 3, 3]
    assert [traffic.dependencies.of(row).tolist() for row in range(5)] == [[], [], [], [], [3]]
    assert traffic.start_ps_N.tolist() == [0, 0, 0, 1000, 1000]
    assert traffic.delay_ps_N.tolist() == [0, 0, 0, 0, 7]


def test_operations_of_different_parts_stay_apart() -> None:
    """Both chains call their operation 0; joined they are 0 and 1, and traffic without operation keeps none."""
    incast = make_incast(IncastSpec(senders=1, message_bytes=500), one_switch(4), 0)
    _, traffic = join([chain(), incast, chain()], start_ps=[0, 0, 0])
    assert traffic.operation_N.tolist() == [0, 0, UNKNOWN, 1, 1]


def test_gpus_of_different_parts_stay_apart() -> None:
    """Both jobs number their GPUs by rank, from 0; NICs are those of one fabric."""
    job = traffic_of(
        [
            {"medium": Medium.NVLINK, "source": 0, "destination": 2},
            {"source": 1, "destination": 3, "relayed_from": 0, "relayed_to": 1},
        ]
    )
    queue_pairs, _ = chain()
    _, traffic = join([(queue_pairs, job), (queue_pairs, job)], start_ps=[0, 0])
    assert traffic.source_N.tolist() == [0, 1, 3, 1]
    assert traffic.destination_N.tolist() == [2, 3, 5, 3]
    assert traffic.relayed_from_N.tolist() == [UNKNOWN, 0, UNKNOWN, 3]
    assert traffic.relayed_to_N.tolist() == [UNKNOWN, 1, UNKNOWN, 4]


def test_one_part_is_itself() -> None:
    """Nothing is renumbered where there is nothing beside it."""
    queue_pairs, traffic = make_permutation(PermutationSpec(message_bytes=1000), one_switch(8), 5)
    joined_pairs, joined = join([(queue_pairs, traffic)], start_ps=[0])
    assert np.array_equal(joined_pairs.source_port_Q, queue_pairs.source_port_Q)
    assert np.array_equal(joined.destination_N, traffic.destination_N)


def test_a_part_that_starts_beyond_the_clock_is_refused() -> None:
    """The sum of two starts wrapped around, and the transfer started first."""
    late_ps = 2**63 - 1
    with pytest.raises(
        InputError, match=rf"^start: a transfer at {late_ps} ps\n  allowed: up to {2**62 - 1} ps, 53 days"
    ):
        join([chain(), chain()], start_ps=[0, late_ps])
