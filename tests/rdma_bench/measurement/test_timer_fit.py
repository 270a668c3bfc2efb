"""A model fitted to trials says of them, and of settings that were not tried, what the adapter does."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.retransmission import CONNECTX_6, NEVER_PS, TimerModel
from fabrictune.rdma_bench.measurement.timer_fit import fit_timers
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.trials import FOR_GOOD, NONE, RETRIES_EXCEEDED, TimerTrial

# Timeout exponent and seconds until the queue pair gave up, with 7 retries: the reference's table of a ConnectX-6.
MEASURED_CONNECTX_6 = ((14, 3.66), (18, 14.67), (20, 59.77))


def total_ns(model: TimerModel, exponent: int, retries: int) -> int:
    """Return when a dead path ends the queue pair."""
    return sum(model.waits_ps(exponent, retries)) // 1000


def trials_of(model: TimerModel, exponents: Iterable[int], retries: Iterable[int]) -> list[TimerTrial]:
    """Return what an adapter of this model shows; an endless retry count never ends."""
    counts = list(retries)
    return [
        TimerTrial(
            spec=RetransmissionSpec(timeout_exponent=exponent, retries=count),
            cut_ns=FOR_GOOD,
            status=NONE if NEVER_PS in model.waits_ps(exponent, count) else RETRIES_EXCEEDED,
            after_ns=total_ns(model, exponent, count),
        )
        for exponent in exponents
        for count in counts
    ]


def test_a_connectx_6_is_recovered_from_totals_alone() -> None:
    """Floor 16, twice the nominal, an early stage; then T 19, never tried, within 1 %, and the published totals."""
    fit = fit_timers(trials_of(CONNECTX_6, (14, 16, 17, 18, 20), (2, 4, 7)))
    assert (fit.timers.floor_exponent, fit.timers.extra_waits) == (16, -1)
    assert fit.timers.interval_multiplier == pytest.approx(2.0)
    assert fit.worst_error_fraction < 0.001
    for exponent, total_s in MEASURED_CONNECTX_6:
        assert total_ns(fit.timers, exponent, 7) / 1e9 == pytest.approx(total_s, rel=0.01)


@given(
    st.integers(0, 16), st.floats(1.0, 4.0), st.floats(0.5, 2.0), st.sampled_from([(14, 18), (12, 15, 17), (15, 19)])
)
def test_any_plain_adapter_is_recovered(
    floor: int, multiplier: float, first_wait: float, exponents: tuple[int, ...]
) -> None:
    """Floor, multiplier and first wait of the standard's form come back, so settings not tried agree within 1 %."""
    model = TimerModel(floor_exponent=floor, interval_multiplier=multiplier, first_wait_multiplier=first_wait)
    fit = fit_timers(trials_of(model, exponents, (1, 3, 6)))
    for exponent in (exponents[0], exponents[-1] + 1):
        for retries in (2, 5):
            expected = total_ns(model, exponent, retries)
            assert total_ns(fit.timers, exponent, retries) == pytest.approx(expected, rel=0.01)


def test_noise_does_not_make_an_early_stage() -> None:
    """Times up to 5 % late, as a busy machine has them, are still a plain adapter's."""
    late = (0, 3, 5, 1, 4, 2)
    trials = [
        TimerTrial(**{**vars(trial), "after_ns": trial.after_ns * (100 + late[row % 6]) // 100})
        for row, trial in enumerate(trials_of(TimerModel(), (14, 16, 18), (0, 2, 4, 6)))
    ]
    fit = fit_timers(trials)
    assert fit.timers.early_ns == ()
    assert fit.timers.floor_exponent == 0
    assert fit.timers.interval_multiplier == pytest.approx(1.0, rel=0.05)


def test_a_retry_count_without_end_is_found() -> None:
    """Soft-RoCE goes on for ever with 7 retries: those trials end at their limit, the others in status 12."""
    fit = fit_timers(trials_of(TimerModel(endless_retries=7), (14, 16), (1, 4, 7)))
    assert fit.timers.endless_retries == 7
    assert fit.timers.interval_multiplier == pytest.approx(1.0)


def test_what_one_exponent_cannot_tell_is_said() -> None:
    """Without a second exponent a floor below the first does not show: its interval is 0 to that."""
    fit = fit_timers(trials_of(TimerModel(), (14,), (1, 4)))
    (floor,) = (interval for interval in fit.intervals if interval.parameter == "floor_exponent")
    assert (floor.low, floor.high) == (0, 14)


def test_trials_without_a_slope_are_refused_with_what_to_measure() -> None:
    """One retry count gives no wait."""
    with pytest.raises(InputError) as caught:
        fit_timers(trials_of(TimerModel(), (14, 16), (3,)))
    assert str(caught.value) == (
        "trials: no timeout with 2 retry counts that ended in status 12\n"
        "  next: measure with more of them: --retries 2 --retries 5"
    )
