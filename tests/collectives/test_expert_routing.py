"""Routing of tokens: closed forms against every order of scores, and draws against both."""

from fractions import Fraction
from itertools import permutations
from math import comb

import numpy as np
import pytest

from fabrictune.collectives.expert_routing import RoutingSpec, draw_experts, popularity, reach_probability
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.seeds import stream

DEEPSEEK = RoutingSpec(num_experts=256, num_choices=8, num_groups=8, chosen_groups=4)


def taken(spec: RoutingSpec, order: tuple[int, ...]) -> set[int]:
    """Return the experts of a token whose scores have this order: first the groups of the best, then from these."""
    group_of = [expert // spec.group_size for expert in order]
    groups = list(dict.fromkeys(group_of))[: spec.groups_of_token]
    return set([expert for expert in order if expert // spec.group_size in groups][: spec.num_choices])


@pytest.mark.parametrize(
    "spec",
    [
        RoutingSpec(num_experts=6, num_choices=2),
        RoutingSpec(num_experts=6, num_choices=3, num_groups=3, chosen_groups=2),
        RoutingSpec(num_experts=6, num_choices=2, num_groups=3, chosen_groups=1),
        RoutingSpec(num_experts=8, num_choices=4, num_groups=4, chosen_groups=2),
        RoutingSpec(num_experts=8, num_choices=3, num_groups=4, chosen_groups=3),
        RoutingSpec(num_experts=8, num_choices=5, num_groups=2, chosen_groups=2),
    ],
)
def test_the_closed_form_is_the_share_of_all_orders(spec: RoutingSpec) -> None:
    """Every order of scores is as likely; sets are parts of a group and whole groups."""
    orders = list(permutations(range(spec.num_experts)))
    sizes = {1, spec.group_size, *(spec.group_size * groups for groups in range(spec.num_groups + 1))}
    for size in (size for size in sizes if size <= spec.group_size or size % spec.group_size == 0):
        reached = sum(not taken(spec, order).isdisjoint(range(size)) for order in orders)
        assert reach_probability(spec, size) == Fraction(reached, len(orders))


@pytest.mark.parametrize("size", [1, 4, 32, 64, 256])
def test_without_groups_it_is_the_hypergeometric_law(size: int) -> None:
    """8 of 256 experts miss a set of m with C(256 - m, 8) / C(256, 8)."""
    spec = RoutingSpec(num_experts=256, num_choices=8)
    assert reach_probability(spec, size) == 1 - Fraction(comb(256 - size, 8), comb(256, 8))


def test_a_deepseek_token_reaches_almost_all_of_its_four_nodes() -> None:
    """On 8 hosts 3.983 of at most 4; on 64 ranks 7.47 of at most 8; no host is reached by more than half of them."""
    assert float(8 * reach_probability(DEEPSEEK, 32)) == pytest.approx(3.98308, abs=1e-5)
    assert float(64 * reach_probability(DEEPSEEK, 4)) == pytest.approx(7.47, abs=0.01)
    assert reach_probability(DEEPSEEK, 256) == 1
    assert reach_probability(DEEPSEEK, 0) == 0


def test_draws_follow_the_closed_form() -> None:
    """100,000 tokens: within four standard deviations of each expert's, host's and rank's share."""
    num_tokens = 100_000
    chosen_TK = draw_experts(DEEPSEEK, num_tokens, popularity(256, 0.0, stream(1, "p")), stream(1, "draw"))
    assert chosen_TK.shape == (num_tokens, 8)
    for size in (1, 4, 32):
        expected = float(reach_probability(DEEPSEEK, size))
        margin = 4 * np.sqrt(expected * (1 - expected) / num_tokens)
        assert abs((chosen_TK < size).any(axis=1).mean() - expected) < margin


def test_a_token_takes_different_experts_of_as_many_groups_as_it_may() -> None:
    """Eight experts, of up to four groups."""
    chosen_TK = draw_experts(DEEPSEEK, 1000, popularity(256, 1.0, stream(2, "p")), stream(2, "draw"))
    assert all(len(set(row)) == 8 and len({expert // 32 for expert in row}) <= 4 for row in chosen_TK.tolist())


def test_popularity_follows_zipf() -> None:
    """Weights 1, 1/2, 1/3, ... in some order; a token's one expert follows them within four standard deviations."""
    weights_X = popularity(8, 1.0, stream(3, "p"))
    assert sorted(weights_X.tolist(), reverse=True) == [1 / place for place in range(1, 9)]
    assert popularity(8, 0.0, stream(3, "p")).tolist() == [1.0] * 8
    chosen_TK = draw_experts(RoutingSpec(num_experts=8, num_choices=1), 50_000, weights_X, stream(3, "draw"))
    share_X = weights_X / weights_X.sum()
    drawn_X = np.bincount(chosen_TK.ravel(), minlength=8) / 50_000
    assert (np.abs(drawn_X - share_X) < 4 * np.sqrt(share_X * (1 - share_X) / 50_000)).all()


def test_draws_in_parts_are_of_one_stream() -> None:
    """4,000,000 scores are drawn at a time: the tokens of the first parts do not depend on how many follow."""
    spec = RoutingSpec(num_experts=4096, num_choices=1)
    weights_X = popularity(4096, 0.0, stream(0, "p"))
    assert np.array_equal(
        draw_experts(spec, 2048, weights_X, stream(4, "draw")),
        draw_experts(spec, 3000, weights_X, stream(4, "draw"))[:2048],
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"num_experts": 0, "num_choices": 1, "num_groups": 0}, "num_experts: 0\n  allowed: 1 to 65536\n"),
        ({"num_experts": 8, "num_choices": 9}, "num_choices: 9\n  allowed: 1 to 8, the experts of the groups"),
        ({"num_experts": 8, "num_choices": 2, "num_groups": 3}, "num_groups: 3\n  allowed: a divisor of the 8 experts"),
        ({"num_experts": 8, "num_choices": 2, "chosen_groups": 2}, "chosen_groups: 2\n  allowed: 1 to 1, the groups"),
        (
            {"num_experts": 8, "num_choices": 3, "num_groups": 4, "chosen_groups": 1},
            "num_choices: 3\n  allowed: 1 to 2, the experts of the groups that a token may take",
        ),
    ],
)
def test_contradictions_are_refused(keys: dict[str, int], message: str) -> None:
    """With what is allowed."""
    with pytest.raises(InputError) as error:
        RoutingSpec(**keys)
    assert message in str(error.value)
