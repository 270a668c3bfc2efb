"""Routing of tokens to experts: which experts each token takes, drawn, and how likely it reaches a set of them.

A token takes the experts of its `num_choices` best scores. Where experts are in groups, it takes the groups of its best
experts first, `chosen_groups` of them, and then its experts from these alone (node-limited routing). Scores are drawn
so that without groups the next expert of a token is each of the rest with a chance in proportion to its popularity
(Plackett and Luce). Popular experts are placed at random.

A draw in order of scores is a walk over the experts without replacement, which skips further groups once it has met as
many as a token may have. For equal popularity, the chance that it reaches a set of experts follows from the walk's
states, in exact fractions.

Source: DeepSeek-AI, "DeepSeek-V3 technical report", 2024, section 2.1.2 (node-limited routing); DeepEP,
tests/legacy/test_internode.py (a group's score is its best expert's); Plackett, Applied Statistics 24 (1975).
Left out: a group's score as the sum of its two best; capacities, which drop tokens; what a token is about.

Shapes: T tokens, X experts, G groups, K choices.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake

MAX_EXPERTS = 65_536
MAX_SCORES = 2**22  # drawn at a time


@dataclass(frozen=True, kw_only=True)
class RoutingSpec:
    """Experts, and how many of them a token takes. Raises InputError with all mistakes."""

    num_experts: int = field(
        metadata={
            "help": "experts of a layer, dealt over the ranks of ep in order",
            "known_as": ("n_routed_experts", "num_local_experts"),
        }
    )
    num_choices: int = field(
        metadata={"help": "experts of a token (top-k)", "known_as": ("top_k", "topk", "num_experts_per_tok")}
    )
    num_groups: int = field(default=1, metadata={"help": "groups of experts, in order", "known_as": ("n_group",)})
    chosen_groups: int | None = field(
        default=None,
        metadata={
            "help": "groups that a token may take experts from; by default all",
            "known_as": ("topk_group", "topk_groups"),
        },
    )

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=where, found=f"{found}", allowed=allowed)
            for where, found, is_right, allowed in (
                ("num_experts", self.num_experts, 1 <= self.num_experts <= MAX_EXPERTS, f"1 to {MAX_EXPERTS}"),
                ("num_groups", self.num_groups, self.num_groups >= 1, "1 or more"),
            )
            if not is_right
        ]
        if not mistakes:
            mistakes = list(self._contradictions())
        if mistakes:
            raise InputError(*mistakes)

    def _contradictions(self) -> list[Mistake]:
        groups, of_groups = self.num_groups, self.groups_of_token
        if self.num_experts % groups:
            allowed = f"a divisor of the {self.num_experts} experts"
            return [Mistake(where="num_groups", found=f"{groups}", allowed=allowed)]
        if not 1 <= of_groups <= groups:
            return [Mistake(where="chosen_groups", found=f"{of_groups}", allowed=f"1 to {groups}, the groups")]
        most = of_groups * self.group_size
        if not 1 <= self.num_choices <= most:
            allowed = f"1 to {most}, the experts of the groups that a token may take"
            return [Mistake(where="num_choices", found=f"{self.num_choices}", allowed=allowed)]
        return []

    @property
    def group_size(self) -> int:
        """Experts of a group."""
        return self.num_experts // self.num_groups

    @property
    def groups_of_token(self) -> int:
        """Groups that a token may take experts from."""
        return self.num_groups if self.chosen_groups is None else self.chosen_groups


def popularity(num_experts: int, exponent: float, order: np.random.Generator) -> FloatArray:
    """Return the popularity of experts by Zipf's law, the i-th most popular i^-exponent, dealt at random, shape X."""
    weights_X = np.arange(1, num_experts + 1, dtype=np.float64) ** -exponent
    return order.permutation(weights_X) if exponent else weights_X


def draw_experts(spec: RoutingSpec, num_tokens: int, popularity_X: FloatArray, random: np.random.Generator) -> IntArray:
    """Return the experts of each token, in no order, shape T K."""
    at_once = max(1, MAX_SCORES // spec.num_experts)
    parts = [
        _draw(spec, min(at_once, num_tokens - first), popularity_X, random) for first in range(0, num_tokens, at_once)
    ]
    return np.concatenate(parts)


def _draw(spec: RoutingSpec, num_tokens: int, popularity_X: FloatArray, random: np.random.Generator) -> IntArray:
    """Return the experts of some tokens: of the earliest arrivals, each an exponential time of its popularity."""
    time_TX = random.standard_exponential((num_tokens, spec.num_experts)) / popularity_X
    if spec.groups_of_token < spec.num_groups:
        first_TG = time_TX.reshape(num_tokens, spec.num_groups, -1).min(axis=2)
        last = spec.groups_of_token - 1
        last_T1 = np.partition(first_TG, last, axis=1)[:, last : last + 1]
        is_left_out_TX = np.repeat(first_TG > last_T1, spec.group_size, axis=1)
        time_TX[is_left_out_TX] = np.inf
    chosen: IntArray = np.argpartition(time_TX, spec.num_choices - 1, axis=1)[:, : spec.num_choices]
    return chosen


def reach_probability(spec: RoutingSpec, num_experts: int) -> Fraction:
    """Return the chance that a token takes one or more of a set of experts, all being equally popular.

    The set is part of a group, or whole groups.
    """
    assert 0 <= num_experts <= spec.num_experts, "a set of the experts"
    num_whole, part = divmod(num_experts, spec.group_size)
    assert num_whole == 0 or part == 0, "part of a group, or whole groups"
    if num_whole:
        return 1 - _missing_groups(spec, num_whole)
    missed = (
        chance * Fraction(comb(spec.group_size - part, taken), comb(spec.group_size, taken))
        for taken, chance in _taken_of_a_group(spec).items()
        if chance  # none of more than a group has
    )
    return 1 - sum(missed, Fraction(0))


def _missing_groups(spec: RoutingSpec, num_missed: int) -> Fraction:
    """Return the chance that a token takes no expert of some groups."""
    size, num_others = spec.group_size, spec.num_groups - num_missed
    states: dict[int, Fraction] = {0: Fraction(1)}  # groups met, none of them among those
    for num_taken in range(spec.num_choices):
        following: dict[int, Fraction] = defaultdict(Fraction)
        for groups, chance in states.items():
            if groups == spec.groups_of_token:
                following[groups] += chance
                continue
            left = spec.num_experts - num_taken
            following[groups + 1] += chance * Fraction((num_others - groups) * size, left)
            following[groups] += chance * Fraction(groups * size - num_taken, left)
        states = following
    return sum(states.values(), Fraction(0))


def _taken_of_a_group(spec: RoutingSpec) -> dict[int, Fraction]:
    """Return how likely a token takes each number of experts of one group."""
    size = spec.group_size
    states: dict[tuple[int, int], Fraction] = {(0, 0): Fraction(1)}  # groups met, taken of the one group
    for num_taken in range(spec.num_choices):
        following: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
        for (groups, taken), chance in states.items():
            if not chance:  # of groups without an expert left
                continue
            is_full, is_met = groups == spec.groups_of_token, taken > 0
            left = (groups * size if is_full else spec.num_experts) - num_taken
            others_met = groups - is_met
            following[groups, taken] += chance * Fraction(others_met * size - (num_taken - taken), left)
            if is_met:
                following[groups, taken + 1] += chance * Fraction(size - taken, left)
            if not is_full:
                new_others = spec.num_groups - groups - (not is_met)
                following[groups + 1, taken] += chance * Fraction(new_others * size, left)
            if not is_full and not is_met:
                following[groups + 1, 1] += chance * Fraction(size, left)
        states = following
    taken_of: dict[int, Fraction] = defaultdict(Fraction)
    for (_, taken), chance in states.items():
        taken_of[taken] += chance
    return taken_of
