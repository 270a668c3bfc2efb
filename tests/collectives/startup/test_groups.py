"""The groups of a job and the order in which they are made."""

import pytest

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout


def test_a_rank_makes_its_own_groups_axis_by_axis() -> None:
    """Rank 5 of TP 2, DP 2, PP 2: pipeline stage 1, data part 0, tensor part 1; messages down the pipeline apart."""
    plan = GroupPlan.of_layout(ParallelLayout(tp=2, dp=2, pp=2))
    assert [(group.name, group.members) for group in plan.of_rank(5)] == [
        ("tp2", (4, 5)),
        ("dp3", (5, 7)),
        ("pp1", (1, 5)),
        ("pp1-down", (1, 5)),
    ]


def test_context_and_expert_parallelism_have_groups_of_their_own() -> None:
    """Rank 3 of CP 2, DP 4, EP 2: the ring's messages need both ways; gradients are summed over edp and dp_cp."""
    plan = GroupPlan.of_layout(ParallelLayout(cp=2, dp=4, ep=2))
    assert [(group.name, group.members) for group in plan.of_rank(3)] == [
        ("cp1", (2, 3)),
        ("cp1-down", (2, 3)),
        ("dp1", (1, 3, 5, 7)),
        ("ep1", (1, 3)),
        ("edp1", (2, 3, 6, 7)),
        ("dp_cp0", (0, 1, 2, 3, 4, 5, 6, 7)),
    ]


def test_an_axis_of_one_rank_needs_no_groups() -> None:
    """4 ranks in two tensor groups, no data or pipeline parallelism."""
    plan = GroupPlan.of_layout(ParallelLayout(tp=4))
    assert [group.name for group in plan.groups] == ["tp0"]


def test_all_impossible_groups_are_named_at_once() -> None:
    """A name twice, a rank twice, a rank that does not exist, a group of one."""
    with pytest.raises(InputError) as error:
        GroupPlan(
            world_size=4,
            groups=(
                ProcessGroup(name="a", members=(0, 1)),
                ProcessGroup(name="a", members=(2, 3)),
                ProcessGroup(name="b", members=(1, 1)),
                ProcessGroup(name="c", members=(3, 4)),
                ProcessGroup(name="world", members=(3,)),
            ),
        )
    assert str(error.value).splitlines() == [
        "group a: a second group of this name",
        "  next: name it otherwise",
        "group world: a second group of this name",
        "  next: name it otherwise",
        "group b: members (1, 1)",
        "  allowed: two ranks or more, each once",
        "group c: members (3, 4)",
        "  allowed: ranks 0 to 3",
        "group world: members (3,)",
        "  allowed: two ranks or more, each once",
    ]
