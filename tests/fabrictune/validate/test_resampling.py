"""Intervals by resampling."""

import numpy as np

from fabrictune.validate.resampling import NUM_DRAWS, bounds, drawn_rounds, median_bounds

STEP_K = np.repeat(np.arange(10), 3)


def test_rounds_of_a_step_are_drawn_together() -> None:
    """Each draw has ten steps, with replacement, and all three rounds of each."""
    draws = list(drawn_rounds(STEP_K, seed=1, is_busy=False))
    assert len(draws) == NUM_DRAWS
    for rounds in draws:
        steps, counts = np.unique(STEP_K[rounds], return_counts=True)
        assert len(rounds) == 30
        assert (counts % 3 == 0).all()
        assert set(rounds.tolist()) == set(np.flatnonzero(np.isin(STEP_K, steps)).tolist())


def test_on_a_busy_machine_a_draw_is_a_single_round() -> None:
    """And the same seed draws the same."""
    draws = [rounds.tolist() for rounds in drawn_rounds(STEP_K, seed=1, is_busy=True)]
    assert {len(rounds) for rounds in draws} == {1}
    assert draws == [rounds.tolist() for rounds in drawn_rounds(STEP_K, seed=1, is_busy=True)]


def test_bounds_hold_ninety_percent_of_the_draws() -> None:
    """Of 1 to 100 in turn, the 5th and the 95th."""
    low, high = bounds(lambda rounds: rounds.astype(np.float64), iter(np.arange(1, 101)[:, None]))
    assert (low.tolist(), high.tolist()) == ([5.0], [95.0])


def test_a_median_has_an_interval_of_two_of_the_values() -> None:
    """Of 1 to 100: 50 less and more 1.645 * 10 / 2 = 8.2, so places 41 and 59 from 0."""
    assert median_bounds(np.arange(1, 101)) == (42.0, 60.0)
    assert median_bounds(np.array([7])) == (7.0, 7.0)
