"""Bruck's schedules, message by message."""

import pytest

from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import bruck
from tests.collectives.by_hand import backwards, later, messages

FIVE = GroupShape(num_members=5)


def test_five_members_gather_in_three_steps() -> None:
    """To the left by 1 its own chunk, by 2 two chunks, by 4 the one that still lacks."""
    places = ((0, 1, (0,)), (1, 2, (0, 1)), (2, 4, (0,)))
    assert messages(bruck.all_gather(FIVE)) == [
        (step, member, (member - distance) % 5, sorted((member + place) % 5 for place in chunks))
        for step, distance, chunks in places
        for member in range(5)
    ]


def test_the_other_operations_follow_from_the_gather() -> None:
    """A reduce-scatter is the gather backwards, and an all-reduce one after the other."""
    gathered, scattered = messages(bruck.all_gather(FIVE)), messages(bruck.reduce_scatter(FIVE))
    assert scattered == backwards(gathered, 2)
    assert messages(bruck.all_reduce(FIVE)) == [*scattered, *later(gathered, 3)]
    assert bruck.reduce_scatter(FIVE).is_reduced_M.all()
    assert not bruck.all_gather(FIVE).is_reduced_M.any()


@pytest.mark.parametrize(("num_members", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_what_it_costs(num_members: int, rounds: int) -> None:
    """ceil(log2 n) rounds a half, and all chunks but one's own."""
    shape, own_share = GroupShape(num_members=num_members), 1 / num_members
    for half in (bruck.all_gather_cost(shape), bruck.reduce_scatter_cost(shape)):
        assert half.rounds == rounds
        assert half.buffers == pytest.approx(1 - own_share)
    whole = bruck.all_reduce_cost(shape)
    assert whole.rounds == 2 * rounds
    assert whole.buffers == pytest.approx(2 * (1 - own_share))
