"""Hierarchical schedules message by message, on two hosts of two members each."""

from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import hierarchical
from tests.collectives.by_hand import backwards, later, messages

TWO_HOSTS = GroupShape(num_members=4, local_size=2)


def test_an_all_to_all_changes_rails_inside_the_host() -> None:
    """Chunk 4 i + j goes from i to j: 0's for 3 to 1, which shares 3's rail and passes it on in the step after."""
    assert messages(hierarchical.all_to_all(TWO_HOSTS)) == [
        (1, 0, 1, [1]),
        (1, 1, 0, [6]),
        (1, 2, 3, [11]),
        (1, 3, 2, [12]),
        (2, 0, 2, [2, 6]),
        (2, 1, 3, [7]),
        (2, 2, 0, [8, 12]),
        (2, 3, 1, [13]),
        (3, 0, 1, [3]),
        (3, 1, 0, [4]),
        (3, 2, 3, [9]),
        (3, 3, 2, [14]),
        (4, 1, 3, [3]),
        (4, 3, 1, [9]),
    ]


def test_an_all_gather_goes_round_the_rails_and_is_copied_inside_the_hosts() -> None:
    """A member sends its own chunk to the other host and to its neighbour, and then its neighbour what has come."""
    assert messages(hierarchical.all_gather(TWO_HOSTS)) == [
        (0, 0, 1, [0]),
        (0, 0, 2, [0]),
        (0, 1, 0, [1]),
        (0, 1, 3, [1]),
        (0, 2, 0, [2]),
        (0, 2, 3, [2]),
        (0, 3, 1, [3]),
        (0, 3, 2, [3]),
        (1, 0, 1, [2]),
        (1, 1, 0, [3]),
        (1, 2, 3, [0]),
        (1, 3, 2, [1]),
    ]


def test_a_reduce_scatter_is_the_all_gather_backwards() -> None:
    """First the sums inside the hosts, then one step on the rails."""
    gathered = messages(hierarchical.all_gather(TWO_HOSTS))
    assert messages(hierarchical.reduce_scatter(TWO_HOSTS)) == backwards(gathered, 1)


def test_an_all_reduce_begins_its_second_half_after_the_first() -> None:
    """Two steps each."""
    first, second = (messages(half(TWO_HOSTS)) for half in (hierarchical.reduce_scatter, hierarchical.all_gather))
    assert messages(hierarchical.all_reduce(TWO_HOSTS)) == [*first, *later(second, 2)]


def test_what_a_hierarchy_costs() -> None:
    """Rounds: a step inside the host, if there are neighbours, and one for each host but the first; both ways twice."""
    half = hierarchical.all_gather_cost(TWO_HOSTS)
    assert (half.rounds, half.buffers) == (2, 1 / 4)
    whole = hierarchical.all_reduce_cost(TWO_HOSTS)
    assert (whole.rounds, whole.buffers) == (4, 2 / 4)
    flat = hierarchical.all_reduce_cost(GroupShape(num_members=4))
    assert (flat.rounds, flat.buffers) == (6, 6 / 4)
    assert hierarchical.all_to_all_cost(TWO_HOSTS).rounds == 2
    assert hierarchical.all_to_all_cost(GroupShape(num_members=4)).rounds == 1
    assert hierarchical.all_to_all_cost(GroupShape(num_members=4, local_size=4)).rounds == 1
    assert hierarchical.all_to_all_cost(GroupShape(num_members=8, local_size=2)).buffers == 6 / 8
