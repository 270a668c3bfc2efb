"""What the ordered start asks of its store, and that it ends whatever groups there are."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.collectives.startup.groups import GroupPlan, ProcessGroup
from fabrictune.collectives.startup.operation_count import count_operations, num_operations, ordered_operations
from fabrictune.collectives.startup.rendezvous import join_attempt, rendezvous, start
from fabrictune.collectives.startup.store_operations import Steps
from fabrictune.foundation.errors import StartupError
from fabrictune.foundation.layout import ParallelLayout


def leave_to_torch(group: ProcessGroup) -> Steps[None]:
    """Ask the store for nothing."""
    yield from ()


def counted(plan: GroupPlan) -> Counter[str]:
    """Run every rank of a plan in memory."""
    return count_operations(start(plan, rank, f"host:{rank}", leave_to_torch) for rank in range(plan.world_size))


@st.composite
def plans(draw: st.DrawFn) -> GroupPlan:
    """Groups that overlap in any way."""
    world_size = draw(st.integers(1, 12))
    members = st.lists(st.integers(0, world_size - 1), min_size=2, unique=True)
    drawn = draw(st.lists(members, max_size=8)) if world_size > 1 else []
    groups = tuple(ProcessGroup(name=f"g{number}", members=tuple(ranks)) for number, ranks in enumerate(drawn))
    return GroupPlan(world_size=world_size, groups=groups)


@given(plans())
def test_any_groups_are_made_without_deadlock_and_at_the_counted_cost(plan: GroupPlan) -> None:
    """Every rank ends, and the number of operations is the closed form's."""
    assert counted(plan) == ordered_operations(plan)


@pytest.mark.parametrize("dp", [1, 4, 16, 33])
def test_the_closed_form_holds_for_rendezvous_of_several_levels(dp: int) -> None:
    """TP 8, PP 8: up to 2,112 ranks, whose tree of 64 branches has inner places on two levels."""
    plan = GroupPlan.of_layout(ParallelLayout(tp=8, dp=dp, pp=8))
    assert counted(plan) == ordered_operations(plan)


def test_the_cost_of_a_known_job_worked_out_by_hand() -> None:
    """TP 8, PP 8, DP 32.

    Groups: 256 of 8 along TP, twice as many along PP, and 64 of 32 cost 17, 17 and 65 each: 17,216 operations. All
    2,048 in a tree of ceil(2047 / 64) = 32 inner places: 2 * 2048 + 3 * 32 - 2 = 4,190. Joining: 2,048.
    """
    plan = GroupPlan.of_layout(ParallelLayout(tp=8, dp=32, pp=8))
    assert num_operations(ordered_operations(plan)) == 17_216 + 4_190 + 2_048


def test_ranks_that_disagree_about_the_order_are_found_out() -> None:
    """Two ranks share two groups and begin with different ones: each waits for the other."""
    first, second = ProcessGroup(name="a", members=(0, 1)), ProcessGroup(name="b", members=(0, 1))

    def make(rank: int, groups: tuple[ProcessGroup, ...]) -> Steps[None]:
        for group in groups:
            yield from rendezvous(group, rank)

    with pytest.raises(StartupError, match="2 ranks wait for one another"):
        count_operations([make(0, (first, second)), make(1, (second, first))])


def test_a_rank_that_joins_twice_is_refused() -> None:
    """The second process reads the first one's name."""
    with pytest.raises(StartupError) as error:
        count_operations([join_attempt(3, "host4:100:a"), join_attempt(3, "host7:200:b")])
    assert str(error.value) == (
        "rank 3: has joined this attempt before, as host4:100:a; now it joins as host7:200:b\n"
        "  next: give each process its own rank, and each start of the job a new attempt name"
    )
