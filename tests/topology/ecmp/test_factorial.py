"""Effects of a factorial experiment, worked out by hand."""

import numpy as np
import pytest

from fabrictune.topology.ecmp.factorial import designs, effects


def test_designs_count_in_binary() -> None:
    """All low first, the last factor changing fastest."""
    assert designs(2) == [(False, False), (False, True), (True, False), (True, True)]
    assert len(set(designs(3))) == 8


def test_two_factors_by_hand() -> None:
    """Responses 1, 2, 5, 10 of (low, low), (low, high), (high, low), (high, high).

    A: (5 + 10 - 1 - 2) / 2 = 6; B: (2 + 10 - 1 - 5) / 2 = 3; A x B: (10 - 5 - 2 + 1) / 2 = 2.
    """
    response = np.tile(np.array([[1.0], [2.0], [5.0], [10.0]]), 4)
    found = {factors: effect.value for factors, effect in effects(response)}
    assert found == {(0,): 6.0, (1,): 3.0, (0, 1): 2.0}


def test_the_effects_give_back_the_responses() -> None:
    """A response is the mean and half of every effect with its sign: eight numbers from eight numbers."""
    response_DS = np.random.default_rng(3).normal(size=(8, 5))
    found = {factors: effect.value for factors, effect in effects(response_DS)}
    for levels, response in zip(designs(3), response_DS.mean(axis=1), strict=True):
        signs = [1 if is_high else -1 for is_high in levels]
        rebuilt = response_DS.mean() + sum(value / 2 * np.prod([signs[k] for k in on]) for on, value in found.items())
        assert rebuilt == pytest.approx(response)


def test_what_varies_with_the_seed_has_an_interval() -> None:
    """A difference of 1 under noise of 0.1 a design: an interval of some 0.03 that holds it; without noise, none."""
    draw = np.random.default_rng(7)
    noisy = np.array([[0.0], [1.0]]) + draw.normal(0, 0.1, (2, 100))
    ((_, effect),) = effects(noisy)
    assert effect.low < 1.0 < effect.high
    assert 0.01 < effect.half_width < 0.05
    ((_, exact),) = effects(np.array([[0.0] * 5, [1.0] * 5]))
    assert exact.half_width == 0.0
