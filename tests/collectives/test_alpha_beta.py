"""Costs: the closed forms against the schedules they are about, message by message."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.collectives.algorithms import ALGORITHMS
from fabrictune.collectives.alpha_beta import cost
from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.traces import Operation

CLAIMS = [
    pytest.param(name, operation, id=f"{name}-{operation.name.lower()}")
    for name, algorithm in ALGORITHMS.items()
    for operation in algorithm.schedules
    if operation not in (Operation.BROADCAST, Operation.ALL_TO_ALL)
]


def longest_chain(schedule: Schedule) -> int:
    """Return the most messages that must follow one another."""
    length = np.ones(len(schedule), np.int64)
    for message in range(len(schedule)):
        length[message] += length[schedule.dependencies.of(message)].max(initial=0)
    return int(length.max(initial=0))


@pytest.mark.parametrize(("name", "operation"), CLAIMS)
@settings(deadline=None, max_examples=25)
@given(num_members=st.integers(1, 40))
def test_the_closed_form_counts_the_schedule(name: str, operation: Operation, num_members: int) -> None:
    """Rounds are the longest chain of messages, buffers the parts that the busiest member sends.

    Bruck's last round may not wait for the one before it, in each half.
    """
    shape = GroupShape(num_members=num_members)
    schedule = ALGORITHMS[name].schedules[operation](shape)
    counted = cost(name, operation, shape)
    spare = 2 if name == "bruck" else 0
    assert counted.rounds - spare <= longest_chain(schedule) <= counted.rounds
    sent = np.bincount(schedule.sender_M, weights=schedule.bytes_M(schedule.num_parts), minlength=num_members)
    assert counted.buffers == pytest.approx(sent.max() / schedule.num_parts)


def test_a_hierarchy_sends_between_hosts_what_a_ring_a_rail_sends() -> None:
    """Four hosts of eight: three steps each way and two inside; a NIC sends 2 * 3 chunks of 1/32."""
    counted = cost("hierarchical", Operation.ALL_REDUCE, GroupShape(num_members=32, local_size=8))
    assert (counted.rounds, counted.buffers) == (8, 6 / 32)


def test_time_follows_from_counts() -> None:
    """A ring of four, 8 MB at 400 Gb/s and 2 us: 6 * 2 us and 1.5 * 160 us."""
    counted = cost("ring", Operation.ALL_REDUCE, GroupShape(num_members=4))
    assert counted.time_ps(8_000_000, 400e9, 2_000_000) == pytest.approx(252_000_000)


def test_an_operation_without_a_way_of_its_own_is_refused() -> None:
    """A tree has no all-gather."""
    with pytest.raises(InputError, match="all_gather by 'double_binary_tree'"):
        cost("double_binary_tree", Operation.ALL_GATHER, GroupShape(num_members=4))
