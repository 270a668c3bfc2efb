"""Ranks agree through a store: one judges, all learn the same, whatever the order in which they come."""

from collections.abc import Sequence

import pytest

from fabrictune.collectives.startup.consensus import agree
from fabrictune.collectives.startup.operation_count import count_operations
from fabrictune.collectives.startup.store_operations import Steps


def say(num_ranks: int, rank: int, verdicts: dict[int, str]) -> Steps[None]:
    """State the rank's number, and keep the verdict."""

    def judge(statements: Sequence[str]) -> str:
        assert rank == 0, "rank 0 alone judges"
        return "+".join(statements)

    verdicts[rank] = yield from agree(num_ranks, rank, f"<{rank}>", judge)


@pytest.mark.parametrize("num_ranks", [1, 2, 7, 130])
@pytest.mark.parametrize("direction", [1, -1])
def test_all_learn_what_rank_0_makes_of_all_statements(num_ranks: int, direction: int) -> None:
    """Also with 130 ranks, whose rendezvous is a tree of two levels, in any order of ranks."""
    verdicts: dict[int, str] = {}
    count_operations(say(num_ranks, rank, verdicts) for rank in range(num_ranks)[::direction])
    expected = "+".join(f"<{rank}>" for rank in range(num_ranks))
    assert verdicts == dict.fromkeys(range(num_ranks), expected)


def test_rank_0_stays_until_all_are_informed() -> None:
    """Or the store that it may serve would go before the others have read the verdict."""
    order: list[int] = []

    def note(rank: int) -> Steps[None]:
        yield from agree(3, rank, "", lambda statements: "good")
        order.append(rank)

    count_operations(note(rank) for rank in range(3))
    assert order[-1] == 0
