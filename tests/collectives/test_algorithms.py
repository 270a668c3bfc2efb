"""Every algorithm is proved by running it on symbols, whole and cut into channels and slices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.collectives.algorithms import ALGORITHMS, DEFAULTS, Implementation, MakeSchedule
from fabrictune.collectives.channels import over_channels
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.schedule import GroupShape
from fabrictune.foundation.traces import Operation

CLAIMS = [
    pytest.param(operation, implementation.make_schedule, id=f"{name}-{operation.name.lower()}")
    for name, implementations in [
        *((name, algorithm.implementations) for name, algorithm in ALGORITHMS.items()),
        ("default", DEFAULTS),
    ]
    for operation, implementation in implementations.items()
]
OWN = [
    pytest.param(implementation, id=f"{name}-{operation.name.lower()}")
    for name, algorithm in ALGORITHMS.items()
    for operation, implementation in algorithm.implementations.items()
]


@st.composite
def shapes(draw: st.DrawFn, most: int) -> GroupShape:
    """Return groups of up to `most` members on hosts that hold up to eight each."""
    local_size = draw(st.integers(1, 8))
    num_hosts = draw(st.integers(1, max(1, most // local_size)))
    return GroupShape(num_members=num_hosts * local_size, local_size=local_size)


def for_operation(operation: Operation, shape: GroupShape) -> GroupShape:
    """Return the shape, or a pair for a message between two."""
    return GroupShape(num_members=2) if operation == Operation.SEND else shape


@pytest.mark.parametrize(("operation", "make"), CLAIMS)
@settings(deadline=None, max_examples=15)
@given(shape=shapes(64))
def test_every_rank_ends_with_each_contribution_once(
    operation: Operation, make: MakeSchedule, shape: GroupShape
) -> None:
    """The checker counts contributions and looks for races, so that a schedule is right for any timing."""
    assert find_errors(make(for_operation(operation, shape)), operation) == []


@pytest.mark.parametrize(("operation", "make"), CLAIMS)
@settings(deadline=None, max_examples=10)
@given(shape=shapes(12), num_channels=st.integers(1, 4), num_slices=st.integers(1, 3))
def test_channels_and_slices_change_no_result(
    operation: Operation, make: MakeSchedule, shape: GroupShape, num_channels: int, num_slices: int
) -> None:
    """Each copy does the whole operation on its share of every chunk, whoever takes which place in it."""
    shape = for_operation(operation, shape)
    whole = over_channels(make(shape), operation, shape, num_channels=num_channels, num_slices=num_slices)
    assert find_errors(whole, operation) == []


@pytest.mark.parametrize("implementation", OWN)
@given(num_members=st.integers(1, 40))
def test_no_schedule_has_more_messages_than_its_bound(implementation: Implementation, num_members: int) -> None:
    """The bound is what a job too large is refused by, before its schedule is made."""
    schedule = implementation.make_schedule(GroupShape(num_members=num_members))
    assert len(schedule) <= implementation.most_messages(num_members)


@pytest.mark.parametrize("implementation", OWN)
@pytest.mark.parametrize("num_members", [2, 3, 5, 8])
def test_steps_are_numbered_without_gaps(implementation: Implementation, num_members: int) -> None:
    """Whatever the number of members."""
    try:
        schedule = implementation.make_schedule(GroupShape(num_members=num_members))
    except AssertionError:
        pytest.skip("a message between two")
    steps = np.unique(schedule.step_M)
    assert (np.diff(steps) == 1).all()


def test_a_slice_begins_when_its_sender_has_done_with_the_eighth_before() -> None:
    """Ten slices of an all-reduce of two: the first messages of the last two, and what their senders last received."""
    shape = GroupShape(num_members=2)
    base = ALGORITHMS["ring"].implementation_of(Operation.ALL_REDUCE).make_schedule(shape)
    sliced = over_channels(base, Operation.ALL_REDUCE, shape, num_channels=1, num_slices=10)
    slice_M = np.array([sliced.chunks_of(message)[0] % 10 for message in range(len(sliced))])
    assert sliced.step_M.tolist() == sorted(step + begin for step in base.step_M.tolist() for begin in range(10))
    is_first_M = sliced.step_M == slice_M
    for message in np.flatnonzero(is_first_M).tolist():
        waits = sliced.dependencies.of(message).tolist()
        if slice_M[message] < 8:
            assert waits == []
            continue
        (earlier,) = waits
        assert slice_M[earlier] == slice_M[message] - 8
        assert sliced.step_M[earlier] == slice_M[earlier] + 1
        assert sliced.receiver_M[earlier] == sliced.sender_M[message]


@pytest.mark.parametrize(("num_members", "lag"), [(9, 2), (10, 3)])
def test_slices_follow_one_another_at_the_pace_of_the_window(num_members: int, lag: int) -> None:
    """A ring's all-gather has the second half of an all-reduce's steps: the 16 of nine members are two windows."""
    shape = GroupShape(num_members=num_members)
    base = ALGORITHMS["ring"].implementation_of(Operation.ALL_GATHER).make_schedule(shape)
    sliced = over_channels(base, Operation.ALL_GATHER, shape, num_channels=1, num_slices=2)
    slice_M = np.array([sliced.chunks_of(message)[0] % 2 for message in range(len(sliced))])
    first, second = (int(sliced.step_M[slice_M == number].min()) for number in (0, 1))
    assert second - first == lag


def test_only_first_messages_wait_for_the_window() -> None:
    """Of ten slices, the last two begin after the first two; what waits for an arrival waits for nothing else."""
    shape = GroupShape(num_members=3)
    base = ALGORITHMS["ring"].implementation_of(Operation.ALL_REDUCE).make_schedule(shape)
    sliced = over_channels(base, Operation.ALL_REDUCE, shape, num_channels=1, num_slices=10)
    counts = np.diff(sliced.dependencies.offset_N1)
    starts = np.count_nonzero(np.diff(base.dependencies.offset_N1) == 0)
    assert counts.sum() == 10 * np.diff(base.dependencies.offset_N1).sum() + 2 * starts
