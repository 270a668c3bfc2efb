"""Groups of ranks by parallel dimension: every rank is in one group of a kind, and its members agree."""

import pytest

from fabrictune.collectives.traces.rank_groups import KINDS, RankGroups


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tp", "ep", "blocks", "pp"), [(1, 1, 1, 1), (2, 2, 3, 2), (2, 1, 4, 3), (4, 2, 1, 2)])
def test_groups_of_a_kind_part_the_ranks(tp: int, ep: int, blocks: int, pp: int, kind: str) -> None:
    """A group is one object for all of its ranks, so that its ranks are in memory once."""
    groups = RankGroups(num_ranks=tp * ep * blocks * pp, tp=tp, ep=ep, pp=pp)
    for rank in range(groups.num_ranks):
        members = groups.of(rank, kind)
        assert rank in members
        assert all(groups.of(member, kind) is members for member in members)


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("tp", (6, 7)),
        ("dp", (5, 7)),
        ("ep", (5, 7)),
        ("dp_ep", (7,)),
        ("tp_ep", (4, 5, 6, 7)),
        ("pp", (3, 7, 11)),
        ("embedding", (7,)),
        ("all", tuple(range(12))),
    ],
)
def test_a_rank_of_the_middle_stage(kind: str, members: tuple[int, ...]) -> None:
    """Twelve ranks: pairs of tensor ranks, pairs of experts, three stages; rank 7 is 3 of stage 1."""
    assert RankGroups(num_ranks=12, tp=2, ep=2, pp=3).of(7, kind) == members


def test_the_first_and_the_last_stage_share_the_embedding() -> None:
    """Rank 1 of 12 in three stages, and rank 9."""
    assert RankGroups(num_ranks=12, tp=2, pp=3).of(1, "embedding") == (1, 9)
