"""Recursive halving and doubling, message by message."""

import pytest

from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import halving_doubling
from tests.collectives.by_hand import messages


def test_five_members_fold_one_and_halve_two_times() -> None:
    """1 gives its data to 0; 0, 2, 3 and 4 exchange halves with the partner two places on, then quarters; and back."""
    assert messages(halving_doubling.all_reduce(GroupShape(num_members=5))) == [
        (0, 1, 0, [0, 1, 2, 3]),
        (1, 0, 3, [2, 3]),
        (1, 2, 4, [2, 3]),
        (1, 3, 0, [0, 1]),
        (1, 4, 2, [0, 1]),
        (2, 0, 2, [1]),
        (2, 2, 0, [0]),
        (2, 3, 4, [3]),
        (2, 4, 3, [2]),
        (3, 0, 2, [0]),
        (3, 2, 0, [1]),
        (3, 3, 4, [2]),
        (3, 4, 3, [3]),
        (4, 0, 3, [0, 1]),
        (4, 2, 4, [0, 1]),
        (4, 3, 0, [2, 3]),
        (4, 4, 2, [2, 3]),
        (5, 0, 1, [0, 1, 2, 3]),
    ]


def test_a_power_of_two_folds_nobody() -> None:
    """Two members exchange halves, and halves of the sum."""
    assert messages(halving_doubling.all_reduce(GroupShape(num_members=2))) == [
        (1, 0, 1, [1]),
        (1, 1, 0, [0]),
        (2, 0, 1, [0]),
        (2, 1, 0, [1]),
    ]


@pytest.mark.parametrize(
    ("num_members", "rounds", "buffers"), [(1, 0, 0), (2, 2, 1), (3, 4, 2), (4, 4, 1.5), (5, 6, 2.5), (8, 6, 1.75)]
)
def test_what_it_costs(num_members: int, rounds: int, buffers: float) -> None:
    """2 log2 p rounds and 2 (p - 1) / p buffers; two rounds and a buffer more where some are folded."""
    counted = halving_doubling.all_reduce_cost(GroupShape(num_members=num_members))
    assert (counted.rounds, counted.buffers) == (rounds, buffers)
