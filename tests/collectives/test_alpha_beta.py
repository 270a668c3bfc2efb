"""Costs: the closed forms against the schedules they are about, message by message."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.algorithms import ALGORITHMS, Implementation
from fabrictune.collectives.alpha_beta import Cost
from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.foundation.traces import Operation

CLAIMS = [
    pytest.param(name, implementation, id=f"{name}-{operation.name.lower()}")
    for name, algorithm in ALGORITHMS.items()
    for operation, implementation in algorithm.implementations.items()
    if operation != Operation.BROADCAST
]


def cost(name: str, operation: Operation, shape: GroupShape) -> Cost:
    """Return what an operation costs by an algorithm."""
    return ALGORITHMS[name].implementation_of(operation).cost(shape)


def longest_chain(schedule: Schedule) -> int:
    """Return the most messages that must follow one another."""
    length = np.ones(len(schedule), np.int64)
    for message in range(len(schedule)):
        length[message] += length[schedule.dependencies.of(message)].max(initial=0)
    return int(length.max(initial=0))


@pytest.mark.parametrize(("name", "implementation"), CLAIMS)
@settings(deadline=None, max_examples=25)
@example(num_members=1)
@given(num_members=st.integers(1, 40))
def test_the_closed_form_counts_the_schedule(name: str, implementation: Implementation, num_members: int) -> None:
    """Rounds are the longest chain of messages, buffers the parts that the busiest member sends.

    Bruck's last round may not wait for the one before it, in each half.
    """
    shape = GroupShape(num_members=num_members)
    schedule = implementation.make_schedule(shape)
    counted = implementation.cost(shape)
    spare = 2 if name == "bruck" else 0
    assert counted.rounds - spare <= longest_chain(schedule) <= counted.rounds
    sent = np.bincount(schedule.sender_M, weights=schedule.bytes_M(schedule.num_parts), minlength=num_members)
    assert counted.buffers == pytest.approx(sent.max() / schedule.num_parts)


@settings(deadline=None, max_examples=25)
@given(num_members=st.integers(1, 40))
def test_a_broadcast_round_a_ring_ends_when_its_last_part_has_crossed_every_link(num_members: int) -> None:
    """Each link carries one part at a time, in the order in which they come to it, for the part's share of the time."""
    shape = GroupShape(num_members=num_members)
    implementation = ALGORITHMS["ring"].implementation_of(Operation.BROADCAST)
    schedule = implementation.make_schedule(shape)
    free_at = np.zeros(num_members)  # of each member's link
    arrived_at: dict[tuple[int, int], float] = {}
    for message in np.argsort(schedule.step_M, kind="stable").tolist():
        member, part = int(schedule.sender_M[message]), int(schedule.chunk_E[message])
        start = max(free_at[member], arrived_at.get((member, part), 0.0))
        free_at[member] = start + 1 / num_members
        arrived_at[int(schedule.receiver_M[message]), part] = free_at[member]
    assert implementation.cost(shape).buffers == pytest.approx(max(arrived_at.values(), default=0.0))


def test_a_hierarchy_sends_between_hosts_what_a_ring_a_rail_sends() -> None:
    """Four hosts of eight: three steps each way and two inside; a NIC sends 2 * 3 chunks of 1/32."""
    counted = cost("hierarchical", Operation.ALL_REDUCE, GroupShape(num_members=32, local_size=8))
    assert (counted.rounds, counted.buffers) == (8, 6 / 32)


def test_time_follows_from_counts() -> None:
    """A ring of four, 8 MB at 400 Gb/s and 2 us: 6 * 2 us and 1.5 * 160 us."""
    counted = cost("ring", Operation.ALL_REDUCE, GroupShape(num_members=4))
    assert counted.time_ps(8_000_000, 400e9, 2_000_000) == pytest.approx(252_000_000)


def test_an_operation_without_an_implementation_costs_what_the_default_costs() -> None:
    """A tree has no all-gather; four members take a ring's three steps of a quarter each."""
    counted = cost("double_binary_tree", Operation.ALL_GATHER, GroupShape(num_members=4))
    assert counted == Cost(rounds=3, buffers=0.75)


@settings(deadline=None, max_examples=25)
@given(num_hosts=st.integers(1, 6), local_size=st.integers(1, 8))
def test_an_all_to_all_over_rails_sends_from_each_nic_what_its_schedule_sends(num_hosts: int, local_size: int) -> None:
    """Messages inside a host count as a round, and not as bytes of a NIC."""
    shape = GroupShape(num_members=num_hosts * local_size, local_size=local_size)
    implementation = ALGORITHMS["hierarchical"].implementation_of(Operation.ALL_TO_ALL)
    schedule = implementation.make_schedule(shape)
    is_between = schedule.sender_M // local_size != schedule.receiver_M // local_size
    bytes_M = schedule.bytes_M(schedule.num_parts) * is_between
    sent = np.bincount(schedule.sender_M, weights=bytes_M, minlength=shape.num_members)
    counted = implementation.cost(shape)
    assert counted.rounds == longest_chain(schedule)
    assert counted.buffers == pytest.approx(sent.max() / schedule.num_parts)


def test_alone_there_is_nobody_to_send_to() -> None:
    """An all-to-all of one member keeps its only chunk."""
    assert cost("ring", Operation.ALL_TO_ALL, GroupShape(num_members=1)) == Cost(rounds=0, buffers=0.0)
