"""Double binary trees, drawn and counted by hand."""

import pytest

from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import double_binary_tree
from tests.collectives.by_hand import messages


@pytest.mark.parametrize(
    ("num_members", "first", "second"),
    [
        (1, [-1], [-1]),
        (2, [1, -1], [-1, 0]),
        (3, [1, -1, 1], [2, 2, -1]),
        (4, [1, 3, 1, -1], [-1, 2, 0, 2]),
        (5, [1, 3, 1, -1, 3], [4, 2, 4, 2, -1]),
        (6, [1, 3, 1, -1, 5, 3], [2, 0, -1, 4, 2, 4]),
        (8, [1, 3, 1, 7, 5, 3, 5, -1], [-1, 2, 4, 2, 0, 6, 4, 6]),
    ],
)
def test_parents_are_those_of_the_two_trees(num_members: int, first: list[int], second: list[int]) -> None:
    """A search tree of 1 to n, less 1; the second is its mirror where n is even, and moved by one where n is odd."""
    assert double_binary_tree.trees(num_members) == (first, second)


def test_sums_climb_and_come_down_again() -> None:
    """Four members: chunk 0 goes up 0 and 2, 1, 3 and comes down again; chunk 1 likewise in the mirror."""
    assert messages(double_binary_tree.all_reduce(GroupShape(num_members=4))) == [
        (0, 0, 1, [0]),
        (0, 1, 2, [1]),
        (0, 2, 1, [0]),
        (0, 3, 2, [1]),
        (1, 1, 3, [0]),
        (1, 2, 0, [1]),
        (2, 0, 2, [1]),
        (2, 3, 1, [0]),
        (3, 1, 0, [0]),
        (3, 1, 2, [0]),
        (3, 2, 1, [1]),
        (3, 2, 3, [1]),
    ]


@pytest.mark.parametrize(
    ("num_members", "rounds", "buffers"), [(1, 0, 0), (2, 2, 1), (3, 2, 1.5), (4, 4, 2), (7, 4, 2), (8, 6, 2)]
)
def test_what_it_costs(num_members: int, rounds: int, buffers: float) -> None:
    """Up and down a tree of log2 n levels; a half of the buffer up, one to each child, one as a leaf of the other."""
    counted = double_binary_tree.all_reduce_cost(GroupShape(num_members=num_members))
    assert (counted.rounds, counted.buffers) == (rounds, buffers)
    most = double_binary_tree.all_reduce_most_messages(num_members)
    assert most == len(double_binary_tree.all_reduce(GroupShape(num_members=num_members))) == 4 * (num_members - 1)
