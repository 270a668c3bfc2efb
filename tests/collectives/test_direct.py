"""Direct messages, and the chunks they carry."""

import pytest

from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import direct
from tests.collectives.by_hand import messages


def test_three_members_go_round_from_their_right_neighbour() -> None:
    """Chunk 3 i + j from i to j, part j of i's buffer."""
    schedule = direct.all_to_all(GroupShape(num_members=3))
    assert messages(schedule) == [
        (1, 0, 1, [1]),
        (1, 1, 2, [5]),
        (1, 2, 0, [6]),
        (2, 0, 2, [2]),
        (2, 1, 0, [3]),
        (2, 2, 1, [7]),
    ]
    assert schedule.part_K.tolist() == [0, 1, 2] * 3
    assert not schedule.is_reduced_M.any()


def test_one_member_alone_sends_nothing() -> None:
    """What it has for itself it has."""
    assert messages(direct.all_to_all(GroupShape(num_members=1))) == []


def test_a_send_is_one_message() -> None:
    """Of the whole buffer."""
    schedule = direct.send(GroupShape(num_members=2))
    assert messages(schedule) == [(0, 0, 1, [0])]
    assert schedule.bytes_M(100).tolist() == [100]
    assert not schedule.is_reduced_M.any()


@pytest.mark.parametrize(("num_members", "exchange", "send"), [(1, (0, 0), (0, 0)), (2, (1, 0.5), (1, 1))])
def test_what_it_costs(num_members: int, exchange: tuple[int, float], send: tuple[int, float]) -> None:
    """One round each; alone there is nothing to send."""
    shape = GroupShape(num_members=num_members)
    for counted, expected in ((direct.all_to_all_cost(shape), exchange), (direct.send_cost(shape), send)):
        assert (counted.rounds, counted.buffers) == expected
