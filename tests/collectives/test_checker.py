"""The checker must see what is wrong, or its proof is worth nothing: each test breaks a ring in one way."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.collectives.algorithms import MakeSchedule
from fabrictune.collectives.checker import find_errors
from fabrictune.collectives.schedule import GroupShape
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
