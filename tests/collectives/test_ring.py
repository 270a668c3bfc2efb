"""Rings, counted against their closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.schedule import GroupShape, chunk_sizes
from fabrictune.collectives.schedules import ring


@given(num_members=st.integers(1, 64))
def test_all_reduce_takes_two_steps_a_neighbour(num_members: int) -> None:
    """2(n - 1) steps of n messages, one from each member: 2n(n - 1) messages."""
    schedule = ring.all_reduce(GroupShape(num_members=num_members))
    assert len(schedule) == 2 * num_members * (num_members - 1)
    assert len(np.unique(schedule.step_M)) == 2 * (num_members - 1)


def test_three_members_reduce_as_drawn_on_paper() -> None:
    """Step s, member m, chunk m - s - 1 modulo 3: member 0 sends chunks 2, 1, then 0 and 2 complete."""
    schedule = ring.all_reduce(GroupShape(num_members=3))
    of_member_0 = schedule.sender_M == 0
    assert schedule.chunk_E[of_member_0].tolist() == [2, 1, 0, 2]
    assert schedule.is_reduced_M[of_member_0].tolist() == [True, True, False, False]
    assert set(schedule.receiver_M[of_member_0].tolist()) == {1}


@given(num_members=st.integers(2, 64))
def test_everyone_talks_to_the_right_neighbour_only(num_members: int) -> None:
    """A ring has n directed edges, which is why a job needs n connections a group."""
    schedule = ring.all_reduce(GroupShape(num_members=num_members))
    assert ((schedule.sender_M + 1) % num_members == schedule.receiver_M).all()


@given(num_members=st.integers(1, 64))
def test_a_broadcast_is_a_pipeline(num_members: int) -> None:
    """n chunks over n - 1 hops: the last chunk leaves in step n - 1 and arrives n - 1 hops later, 2(n - 1) steps."""
    schedule = ring.broadcast(GroupShape(num_members=num_members))
    assert len(schedule) == num_members * (num_members - 1)
    assert len(np.unique(schedule.step_M)) == 2 * (num_members - 1)
    assert (np.diff(schedule.step_M) >= 0).all()


@given(num_bytes=st.integers(0, 10**12), num_chunks=st.integers(1, 5000))
def test_chunks_are_equal_within_a_byte_and_add_up(num_bytes: int, num_chunks: int) -> None:
    """A buffer that n does not divide still moves whole: the first S mod n chunks carry the rest, a byte each."""
    sizes = chunk_sizes(num_bytes, num_chunks)
    assert sizes.sum() == num_bytes
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(("num_members", "rounds", "buffers"), [(1, 0, 0), (2, 1, 1), (5, 4, 8 / 5)])
def test_what_a_broadcast_costs(num_members: int, rounds: int, buffers: float) -> None:
    """n - 1 links to cross, and 2(n - 1) steps of an n-th of the buffer."""
    counted = ring.broadcast_cost(GroupShape(num_members=num_members))
    assert (counted.rounds, counted.buffers) == (rounds, buffers)
