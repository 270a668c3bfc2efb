"""Two-dimensional all-to-all message by message, on two hosts of two members each."""

from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import two_dimensional
from tests.collectives.by_hand import messages


def test_it_sends_few_large_messages() -> None:
    """Chunk 4 i + j goes from i to j: 0 gives 1 what it has for 1 and 3, and 1 gives 3 what its host has for 3."""
    assert messages(two_dimensional.all_to_all(GroupShape(num_members=4, local_size=2))) == [
        (1, 0, 1, [1, 3]),
        (1, 1, 0, [4, 6]),
        (1, 2, 3, [9, 11]),
        (1, 3, 2, [12, 14]),
        (2, 0, 2, [2, 6]),
        (2, 1, 3, [3, 7]),
        (2, 2, 0, [8, 12]),
        (2, 3, 1, [9, 13]),
    ]


def test_64_members_of_8_hosts_send_14_messages_each() -> None:
    """Seven inside the host of eight chunks, one to each other host of eight: 63 when each is sent directly."""
    schedule = two_dimensional.all_to_all(GroupShape(num_members=64, local_size=8))
    assert len(schedule) == 64 * 14
    assert set(schedule.bytes_M(64 * 1000).tolist()) == {8000}


def test_what_it_costs() -> None:
    """A round inside the host and one between hosts, where there are any; NICs send what a direct one sends."""
    costs = [
        two_dimensional.all_to_all_cost(GroupShape(num_members=n, local_size=g)) for n, g in ((8, 2), (8, 1), (8, 8))
    ]
    assert [(cost.rounds, cost.buffers) for cost in costs] == [(2, 6 / 8), (1, 7 / 8), (1, 0)]
