"""Counts of tokens by rank and host, by hand on four ranks, and as expected on many."""

from fractions import Fraction

import numpy as np
import pytest

from fabrictune.collectives.expert_exchange import TOKEN_BYTES, bytes_of, counts_of_draw, expected_counts
from fabrictune.collectives.expert_routing import RoutingSpec, reach_probability


def test_a_draw_is_counted_by_expert_rank_and_host() -> None:
    """Four ranks on two hosts, two experts each. The first rank's tokens: experts 0, 1 of rank 0, and 2, 7 of 1, 3."""
    tokens = [np.array([[0, 1], [2, 7]]), np.array([[4, 5], [4, 6]]), np.array([[0, 3], [0, 3]]), np.array([[6, 7]])]
    counts = counts_of_draw(tokens, 8, np.array([0, 0, 1, 1]))
    assert counts.choices_nn.tolist() == [[2, 1, 0, 1], [0, 0, 3, 1], [2, 2, 0, 0], [0, 0, 0, 2]]
    assert counts.ranks_nn.tolist() == [[1, 1, 0, 1], [0, 0, 2, 1], [2, 2, 0, 0], [0, 0, 0, 1]]
    assert counts.hosts_nH.tolist() == [[2, 1], [0, 2], [2, 0], [0, 1]]


def test_expected_counts_are_exact_fractions() -> None:
    """Of 64 tokens with top-8, an 8th of 512 choices goes to each of 8 ranks, and a copy with the reach of 32."""
    routing = RoutingSpec(num_experts=256, num_choices=8, num_groups=8, chosen_groups=4)
    counts = expected_counts(routing, 64, 8, 2)
    assert set(counts.choices_nn.ravel()) == {Fraction(64)}
    assert set(counts.ranks_nn.ravel()) == {64 * reach_probability(routing, 32)}
    assert counts.hosts_nH.shape == (8, 4)
    assert set(counts.hosts_nH.ravel()) == {64 * reach_probability(routing, 64)}
    (size,) = set(bytes_of(counts.hosts_nH, 1000).ravel().tolist())
    assert abs(size - 64_000 * reach_probability(routing, 64)) <= Fraction(1, 2)


@pytest.mark.parametrize(("kind", "size"), [("fp8", 7392), ("bf16", 14_336), ("fp32", 28_672)])
def test_bytes_of_a_token(kind: str, size: int) -> None:
    """FP8 has a scale in single precision for each 128 features: 7168 (1 + 4 / 128) B, as DeepEP counts."""
    assert TOKEN_BYTES[kind](7168) == size
    assert TOKEN_BYTES["fp8"](129) == 129 + 8
