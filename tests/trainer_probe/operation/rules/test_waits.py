"""Waits-for graphs of ranks."""

from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.waits import Wait, find_circle, find_roots
from fabrictune.trainer_probe.operation.observations import RankStatus, message_group, message_ranks
from fabrictune.trainer_probe.operation.rules.waits import build_waits


def make_wait(rank: int, *blockers: int) -> Wait:
    """Return a wait of a rank for others."""
    return Wait(rank=rank, group=0, number=0, members=(rank, *blockers), blockers=blockers)


def make_status(rank: int, issued: dict[int, int], waits_for: tuple[int, int] | None) -> RankStatus:
    """Return a rank in a step."""
    return RankStatus(
        rank=rank,
        pid=1,
        section="step",
        step=1,
        num_changes=1,
        quiet_s=0.0,
        section_s=0.0,
        process_state="S",
        cpu_s=0.0,
        issued=issued,
        waits_for=waits_for,
    )


@given(sender=st.integers(0, 499), receiver=st.integers(0, 499))
def test_number_of_messages_names_its_ranks(sender: int, receiver: int) -> None:
    """A pair's number is negative, and the pair can be read from it."""
    group = message_group(sender, receiver, 500)
    assert group < 0
    assert message_ranks(group, 500) == (sender, receiver)


def test_a_rank_waits_for_members_that_have_not_issued() -> None:
    """Request 3 is the fourth: a member that issued 3 has not issued it, one that issued 4 has."""
    ranks = {
        0: make_status(0, {7: 4}, (7, 3)),
        1: make_status(1, {7: 3}, None),
        2: make_status(2, {7: 4}, (7, 3)),
    }
    waits = build_waits(ranks, {7: (0, 1, 2)}, 3)
    assert {rank: wait.blockers for rank, wait in waits.items()} == {0: (1,), 2: (1,)}
    assert find_roots(waits, [0, 2]) == (1,)


def test_all_issued_is_a_root() -> None:
    """Where all members have issued a request, those that wait for it wait for nobody."""
    ranks = {rank: make_status(rank, {7: 4}, (7, 3)) for rank in (0, 1)}
    waits = build_waits(ranks, {7: (0, 1)}, 2)
    assert find_roots(waits, [0]) == (0,)


WAITS = st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9), max_size=3), max_size=10)


@given(WAITS)
def test_circle_is_one(edges: dict[int, set[int]]) -> None:
    """Each rank of a circle waits for the next; without one, each wait ends at a root."""
    waits = {rank: make_wait(rank, *sorted(blockers - {rank})) for rank, blockers in edges.items()}
    circle = find_circle(waits)
    for rank, following in zip(circle, (*circle[1:], *circle[:1]), strict=True):
        assert following in waits[rank].blockers
    if not circle:
        for rank in waits:
            assert find_roots(waits, [rank])


@given(WAITS, st.integers(0, 9))
def test_roots_wait_for_nobody(edges: dict[int, set[int]], begin: int) -> None:
    """A root is no rank that another keeps waiting."""
    waits = {rank: make_wait(rank, *sorted(blockers - {rank})) for rank, blockers in edges.items()}
    for root in find_roots(waits, [begin]):
        assert root not in waits or not waits[root].blockers
