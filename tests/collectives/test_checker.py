"""The checker must see what is wrong, or its proof is worth nothing: each test breaks a ring in one way."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.collectives.algorithms import MakeSchedule
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.schedule import GroupShape, from_moves
from fabrictune.collectives.schedules import ring
from fabrictune.foundation.traces import Dependencies, Operation


def test_a_missing_message_is_found() -> None:
    """Without its last message, one member of four keeps a chunk as it was: one contribution where four are due."""
    whole = ring.all_reduce(GroupShape(num_members=4))
    keep = len(whole) - 1
    cut = replace(
        whole,
        step_M=whole.step_M[:keep],
        sender_M=whole.sender_M[:keep],
        receiver_M=whole.receiver_M[:keep],
        chunk_offset_M1=whole.chunk_offset_M1[: keep + 1],
        chunk_E=whole.chunk_E[:keep],
        is_reduced_M=whole.is_reduced_M[:keep],
        channel_M=whole.channel_M[:keep],
        dependencies=Dependencies(
            offset_N1=whole.dependencies.offset_N1[: keep + 1],
            row_D=whole.dependencies.row_D[: whole.dependencies.offset_N1[keep]],
        ),
    )
    errors = find_errors(cut, Operation.ALL_REDUCE)
    assert len(errors) == 1
    assert errors[0].startswith("member 0 ends with contributions")


def test_adding_twice_is_found() -> None:
    """An all-gather half that adds instead of replacing counts the receiver's partial sums again."""
    whole = ring.all_reduce(GroupShape(num_members=3))
    assert find_errors(replace(whole, is_reduced_M=np.ones(len(whole), bool)), Operation.ALL_REDUCE)


def test_a_wrong_chunk_is_found() -> None:
    """Sending one's own chunk first sends every sum to a member that should not own it."""
    whole = ring.reduce_scatter(GroupShape(num_members=5))
    assert find_errors(replace(whole, chunk_E=(whole.chunk_E + 1) % 5), Operation.REDUCE_SCATTER)


def test_a_message_that_does_not_wait_is_found() -> None:
    """Without dependencies the ring is right only if every message happens to arrive before the next leaves."""
    whole = ring.all_reduce(GroupShape(num_members=3))
    errors = find_errors(replace(whole, dependencies=Dependencies.none(len(whole))), Operation.ALL_REDUCE)
    assert errors[0] == "message 3 does not wait for message 2, whose chunk it passes on"
    unread = [error for error in errors if error.endswith("passes on")]
    assert len(unread) == 9, "every message after the first step's three"
    assert len(errors) - len(unread) == 6, "each of the last two steps' would replace what may not have left yet"


@pytest.mark.parametrize("half", [ring.reduce_scatter, ring.all_gather])
def test_half_a_ring_is_no_all_reduce(half: MakeSchedule) -> None:
    """Each half leaves members with partial sums or with nothing of the others."""
    assert find_errors(half(GroupShape(num_members=4)), Operation.ALL_REDUCE)


@pytest.mark.parametrize(
    ("operation", "num_chunks", "num_missing"),
    [
        (Operation.ALL_REDUCE, 3, 9),  # every member lacks the other two's share of every chunk
        (Operation.BARRIER, 3, 9),
        (Operation.REDUCE_SCATTER, 3, 3),  # every member lacks the sum of the chunk it owns
        (Operation.ALL_GATHER, 3, 6),  # every member lacks the other two's chunks
        (Operation.BROADCAST, 3, 6),  # two members lack three chunks
        (Operation.SEND, 3, 6),
        (Operation.ALL_TO_ALL, 9, 6),  # every member lacks a chunk from each of the other two
    ],
)
def test_without_messages_every_goal_is_missed(operation: Operation, num_chunks: int, num_missing: int) -> None:
    """What three members must hold in the end, less what they hold at the start."""
    idle = from_moves(3, num_chunks, [])
    errors = find_errors(idle, operation)
    assert len(errors) == num_missing
    assert all("ends with contributions" in error for error in errors)


def test_a_goal_says_whose_contribution_is_missing() -> None:
    """A broadcast starts with member 0's contribution at member 0, and with nothing elsewhere."""
    assert find_errors(from_moves(2, 2, []), Operation.BROADCAST) == [
        "member 1 ends with contributions [0, 0] in chunk 0",
        "member 1 ends with contributions [0, 0] in chunk 1",
    ]
    assert find_errors(from_moves(2, 2, []), Operation.ALL_GATHER) == [
        "member 0 ends with contributions [0, 0] in chunk 1",
        "member 1 ends with contributions [0, 0] in chunk 0",
    ]
    assert find_errors(from_moves(2, 2, []), Operation.REDUCE_SCATTER) == [
        "member 0 ends with contributions [1, 0] in chunk 0",
        "member 1 ends with contributions [0, 1] in chunk 1",
    ]
    assert find_errors(from_moves(2, 4, []), Operation.ALL_TO_ALL) == [
        "member 0 ends with contributions [0, 0] in chunk 2",
        "member 1 ends with contributions [0, 0] in chunk 1",
    ]


def test_every_message_that_is_not_waited_for_is_named() -> None:
    """Members 0 and 1 add to member 2's chunk, which 2 passes on to 3, without waiting for either."""
    moves = [(0, 0, 2, 0, True), (0, 1, 2, 0, True), (1, 2, 3, 0, False)]
    schedule = from_moves(4, 1, moves)
    errors = find_errors(replace(schedule, dependencies=Dependencies.none(3)), Operation.ALL_REDUCE)
    assert errors[:2] == [
        f"message 2 does not wait for message {missing}, whose chunk it passes on" for missing in (0, 1)
    ]
