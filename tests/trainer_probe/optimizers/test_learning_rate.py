"""The learning rate of each step, at the points where it can be said by hand."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.optimizers.learning_rate import LearningRateSchedule


def rates(schedule: LearningRateSchedule, *steps: int) -> list[float]:
    return [schedule.learning_rate(step) for step in steps]


def test_the_warm_up_rises_evenly_to_the_peak() -> None:
    """Four steps of warm-up: a fifth of the peak, two, three, four, and then all of it."""
    schedule = LearningRateSchedule(peak=1.0, num_steps=100, num_warmup_steps=4)
    assert rates(schedule, 0, 1, 2, 3, 4) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize(
    ("decay", "middle"),
    [("constant", 1.0), ("linear", 0.1 + 0.9 * 0.75), ("cosine", 0.1 + 0.9 * 0.8535533905932737)],
)
def test_a_quarter_of_the_way_down(decay: str, middle: float) -> None:
    """Peak at step 10, end at step 90, so step 30 is a quarter: cos(45 deg) = 0.7071, and its mean with 1 is 0.8536."""
    schedule = LearningRateSchedule(peak=1.0, num_steps=91, num_warmup_steps=10, decay=decay, floor_fraction=0.1)
    assert schedule.learning_rate(30) == pytest.approx(middle)


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_the_last_step_has_the_floor_and_later_ones_keep_it(decay: str) -> None:
    """100 steps end with step 99."""
    schedule = LearningRateSchedule(peak=2.0, num_steps=100, decay=decay, floor_fraction=0.25)
    assert rates(schedule, 99, 100, 10**6) == pytest.approx([0.5, 0.5, 0.5])
    assert schedule.learning_rate(98) > 0.5


def test_the_inverse_square_root_halves_when_the_scale_has_passed_three_times() -> None:
    """9 warm-up steps: 10 / (10 + 30) is a quarter, whose root is a half."""
    schedule = LearningRateSchedule(
        peak=1.0, num_steps=50, num_warmup_steps=9, decay="inverse-square-root", floor_fraction=0.0
    )
    assert rates(schedule, 9, 39) == pytest.approx([1.0, 0.5])


def test_all_mistakes_are_said_at_once() -> None:
    """Whoever mends one should not find the next only then."""
    with pytest.raises(InputError) as error:
        LearningRateSchedule(peak=0.0, num_steps=10, num_warmup_steps=11, decay="cosin", floor_fraction=2.0)
    assert str(error.value) == (
        "schedule.peak: '0.0'\n  allowed: above 0\n"
        "schedule.num_warmup_steps: '11'\n  allowed: 0 to 10, all steps\n"
        "schedule.decay: 'cosin'\n  did you mean 'cosine'?\n"
        "  allowed: constant, linear, cosine, inverse-square-root\n"
        "schedule.floor_fraction: '2.0'\n  allowed: 0 to 1"
    )
