"""Bisection: planted nodes are found in few rounds, and noise names nobody."""

from collections.abc import Sequence
from math import ceil, log2

import numpy as np
import pytest

from fabrictune.observability.bisection import Group, Oracle, find_guilty, num_rounds

SIZES = (2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 256, 1000, 1024)


def _planted(*guilty: int, least: int = 2) -> Oracle:
    def fails(groups: Sequence[Group]) -> list[bool]:
        nodes = [node for group in groups for node in group]
        assert len(nodes) == len(set(nodes)), "groups of a round share no node"
        assert min(map(len, groups)) >= least
        return [any(node in guilty for node in group) for group in groups]

    return fails


def _noisy(guilty: set[int], error: float, seed: int) -> Oracle:
    random = np.random.default_rng(seed)

    def fails(groups: Sequence[Group]) -> list[bool]:
        return [(not guilty.isdisjoint(group)) != (random.random() < error) for group in groups]

    return fails


@pytest.mark.parametrize("size", [size for size in SIZES if size > 2])
def test_one_guilty_node_is_found_in_logarithmic_rounds(size: int) -> None:
    """All, log2(n) halvings, once more, and the rest: 13 rounds for 1,024 nodes."""
    for guilty in {0, 1, size // 3, size // 2, size - 1}:
        found = find_guilty(range(size), _planted(guilty))
        assert (found.guilty, found.unresolved, found.false_alarms) == ((guilty,), (), ())
        assert len(found.rounds) <= (num_rounds(size) if size > 3 else 9)  # three are paired with one another first
    assert num_rounds(size) == 3 + ceil(log2(size))


@pytest.mark.parametrize("size", SIZES)
def test_healthy_nodes_take_one_round(size: int) -> None:
    found = find_guilty(range(size), _planted())
    assert found.guilty == ()
    assert len(found.rounds) == 1


@pytest.mark.parametrize("size", [4, 8, 64, 1024])
@pytest.mark.parametrize("count", [2, 3])
def test_several_guilty_nodes_are_all_found(size: int, count: int) -> None:
    random = np.random.default_rng(size + count)
    for _ in range(10):
        guilty = tuple(sorted(random.choice(size, min(count, size // 2), replace=False).tolist()))
        found = find_guilty(range(size), _planted(*guilty))
        assert found.guilty == guilty
        assert found.unresolved == ()
        assert len(found.rounds) <= 3 * num_rounds(size)


def test_a_guilty_node_in_each_half_of_four_is_found_by_pairing_anew() -> None:
    """Both halves fail, so nobody has passed: 0 with 2 fails, 1 with 3 passes, and these are companions."""
    assert find_guilty(range(4), _planted(0, 2)).guilty == (0, 2)


def test_two_nodes_alone_cannot_be_told_apart() -> None:
    found = find_guilty((0, 1), _planted(1))
    assert found.guilty == ()
    assert set(found.unresolved) == {(0,), (1,)}


def test_a_test_of_single_nodes_needs_no_companion() -> None:
    assert find_guilty((0, 1), _planted(1, least=1), least_nodes=1).guilty == (1,)


def test_a_group_that_fails_only_as_a_whole_names_nobody() -> None:
    """The fault lies between 1 and 6: each half passes, and all eight fail again."""
    found = find_guilty(range(8), lambda groups: [{1, 6} <= set(group) for group in groups])
    assert found.guilty == ()
    assert found.unresolved == (tuple(range(8)),)


def test_a_failure_that_does_not_come_again_is_a_false_alarm() -> None:
    """The first test of all eight fails by chance; halves pass, and the eight pass when tested again."""
    results = iter([True, False, False, False])
    found = find_guilty(range(8), lambda groups: [next(results) for _ in groups])
    assert found.guilty == ()
    assert found.false_alarms == (tuple(range(8)),)


def test_a_single_node_that_fails_once_is_not_named() -> None:
    random_failures = iter([True, True, False, True, False, False])
    found = find_guilty(range(4), lambda groups: [next(random_failures) for _ in groups])
    assert found.guilty == ()
    assert found.false_alarms == ((0,),)


@pytest.mark.parametrize("error", [0.02, 0.05])
def test_votes_hold_off_noise(error: float) -> None:
    """With best of five, a verdict is wrong once in 10,000 at 2 %, once in 860 at 5 %; a search takes about 20."""
    right = named_wrongly = 0
    for seed in range(200):
        guilty = {seed * 7 % 64}
        found = find_guilty(range(64), _noisy(guilty, error, seed), votes=3)
        right += set(found.guilty) == guilty
        named_wrongly += not set(found.guilty) <= guilty
    assert right >= 190
    assert named_wrongly <= 2


def test_noise_alone_names_nobody() -> None:
    named = [find_guilty(range(64), _noisy(set(), 0.05, seed), votes=2).guilty for seed in range(200)]
    assert sum(map(bool, named)) <= 1
