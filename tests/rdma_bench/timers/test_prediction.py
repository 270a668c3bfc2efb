"""When a queue pair gives up and when its traffic resumes, with the arithmetic of each figure."""

import math
from itertools import pairwise

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.retransmission import TimerModel
from fabrictune.rdma_bench.timers.prediction import Prediction, RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES, FittedInterval, TimerProfile

SECOND_NS = 10**9
WAIT_14_NS = 67_108_864  # 4,096 ns * 2**14


def predicted(profile: str, exponent: int, retries: int = 7) -> Prediction:
    """Return what a known adapter does."""
    return predict_retransmission(
        RetransmissionSpec(timeout_exponent=exponent, retries=retries), KNOWN_PROFILES[profile]
    )


@pytest.mark.parametrize("profile", list(KNOWN_PROFILES))
def test_a_timeout_of_zero_notices_nothing_and_sends_nothing_again(profile: str) -> None:
    """The standard gives exponent 0 the meaning of no timer at all; a floor does not change that."""
    without_timer = predicted(profile, 0)
    assert without_timer.gives_up_ns == math.inf
    assert without_timer.longest_flap_ns == 0
    assert without_timer.resumes_ns(1) == math.inf


def test_exponents_below_the_floor_behave_like_the_floor() -> None:
    """ConnectX-6: T 8 to 16 all wait 2 * 4.096 us * 2**16 = 536.87 ms."""
    below = [predicted("connectx-6", exponent) for exponent in range(8, 17)]
    assert len({prediction.gives_up_ns for prediction in below}) == 1
    assert below[0].interval_ns == 2 * 4096 * 2**16


def test_a_45_second_flap_survives_on_the_adapter_but_not_by_the_document() -> None:
    """T 20, R 7: the document gives 30.1 s, the adapter 59.8 s, and sends last one wait of 8.6 s before that."""
    assert predicted("connectx-6", 20).survives(45 * SECOND_NS)
    assert not predicted("nccl-guide", 20).survives(45 * SECOND_NS)
    assert not predicted("connectx-6", 20).survives(55 * SECOND_NS)


def test_the_last_wait_gives_no_flap_a_chance() -> None:
    """The standard, T 14, R 3: sent again after 1, 2 and 3 waits, given up after 4."""
    prediction = predicted("ibta", 14, 3)
    assert list(prediction.retransmissions_ns) == [WAIT_14_NS, 2 * WAIT_14_NS, 3 * WAIT_14_NS]
    assert prediction.longest_flap_ns == 3 * WAIT_14_NS
    assert prediction.gives_up_ns == 4 * WAIT_14_NS


@pytest.mark.parametrize(("flap_ns", "waits"), [(0, 0), (1, 1), (WAIT_14_NS, 1), (WAIT_14_NS + 1, 2)])
def test_traffic_resumes_with_the_next_retransmission(flap_ns: int, waits: int) -> None:
    """A path that is back just in time for a retransmission lets it through; a nanosecond later costs a wait."""
    assert predicted("ibta", 14).resumes_ns(flap_ns) == waits * WAIT_14_NS


def test_soft_roce_recovers_at_a_tick_of_its_timer() -> None:
    """T 16 and a cut of 500 ms: the second tick of 268.4 ms is at 537 ms."""
    assert predicted("soft-roce", 16).resumes_ns(0.5 * SECOND_NS) == 2 * 4096 * 2**16


def test_soft_roce_takes_seven_retries_for_no_limit() -> None:
    """rdma_rxe reads 7 as endless, which the standard does not: after an hour it sends at the next multiple of T."""
    endless = predicted("soft-roce", 14)
    assert endless.gives_up_ns == endless.longest_flap_ns == math.inf
    hour_ns = 3600 * SECOND_NS
    assert endless.resumes_ns(hour_ns) == math.ceil(hour_ns / WAIT_14_NS) * WAIT_14_NS


def test_between_two_retransmissions_traffic_waits_for_the_later() -> None:
    """ConnectX-6, T 14, R 7, sends again after 12, 71, 138, 239, 440.4 and 977.2 ms, and then every 537 ms."""
    prediction = predicted("connectx-6", 14)
    listed_ms = [time_ns / 1e6 for time_ns in prediction.retransmissions_ns]
    assert listed_ms[:6] == [12.0, 71.0, 138.0, 239.0, 440.4, 977.2]
    for sooner_ms, later_ms in pairwise(listed_ms):
        assert prediction.resumes_ns((sooner_ms + 0.5) * 1e6) == pytest.approx(later_ms * 1e6)


def test_an_endless_sender_goes_on_from_its_last_listed_retransmission() -> None:
    """Early ones after 1 and 3 ms, then 1,024 waits of 67 ms are listed, and the same waits follow without end."""
    timers = TimerModel(early_ns=(1_000_000, 3_000_000), endless_retries=7)
    profile = TimerProfile(name="mine", source="trials", confidence="documented", timers=timers)
    prediction = Prediction(RetransmissionSpec(timeout_exponent=14, retries=7), profile)
    hour_ns = 3600 * SECOND_NS
    waits = math.ceil((hour_ns - 3_000_000) / WAIT_14_NS)
    assert prediction.resumes_ns(hour_ns) == 3_000_000 + waits * WAIT_14_NS


@pytest.mark.parametrize(
    ("exponent", "profile", "confidence"),
    [(20, "connectx-6", "measured"), (22, "connectx-6", "extrapolated"), (22, "ibta", "documented")],
)
def test_a_prediction_says_how_far_to_trust_it(exponent: int, profile: str, confidence: str) -> None:
    """The adapter was tried up to T 20; T 22 is arithmetic."""
    assert predicted(profile, exponent).confidence == confidence


def test_impossible_settings_are_refused_together() -> None:
    """The fields have five bits and three; 15 retries are a common mistake."""
    with pytest.raises(InputError) as raised:
        RetransmissionSpec(timeout_exponent=32, retries=15)
    assert str(raised.value) == "timeout_exponent: 32\n  allowed: 0 to 31\nretries: 15\n  allowed: 0 to 7"


def test_the_defaults_are_nccl_s() -> None:
    """Since 2.23.4: T 20, seven retries."""
    assert RetransmissionSpec() == RetransmissionSpec(timeout_exponent=20, retries=7)


def test_no_prediction_where_the_profile_says_nothing() -> None:
    """With R 0 the measured adapter still retransmits, but not so that the trials agree."""
    with pytest.raises(InputError) as raised:
        predicted("connectx-6", 20, 0)
    assert str(raised.value) == "retries: 0\n  allowed: 1 or more, for connectx-6"


def test_measured_are_only_the_settings_that_were_tried() -> None:
    """ConnectX-6 at T 20: 7 retries were tried, 5 never; the fit to both is arithmetic there."""
    assert predicted("connectx-6", 20, 7).confidence == "measured"
    assert predicted("connectx-6", 20, 5).confidence == "extrapolated"
    assert predicted("connectx-6", 22, 7).basis == "extrapolated, no interval"
    assert predicted("ibta", 20).basis == "documented, no trials"
    assert predicted("soft-roce", 16, 6).basis == "measured, range not kept"


@pytest.mark.parametrize("name", [name for name, profile in KNOWN_PROFILES.items() if profile.tried])
def test_a_tried_setting_has_the_range_of_its_trials(name: str) -> None:
    """The model is within 4 % of it (20 % for R 0 without a floor, as its caveat says)."""
    for tried in KNOWN_PROFILES[name].tried:
        prediction = predicted(name, tried.timeout, tried.retries)
        assert prediction.gives_up_interval_ns == pytest.approx((tried.least_ns, tried.greatest_ns))
        slack = 0.25 if tried.retries < 3 else 0.05
        assert tried.least_ns * (1 - slack) < prediction.gives_up_ns < tried.greatest_ns * (1 + slack)
    assert predicted("connectx-6", 20, 7).gives_up_interval_ns == pytest.approx((59_053_500_000, 59_766_300_000))
    assert predicted("connectx-6", 20, 7).basis == "measured, 5 trials"


def test_a_fitted_profile_extrapolates_with_the_interval_of_its_parameters() -> None:
    """The standard's form with a multiplier of 1.0 to 1.1: T 14, R 3 is 4 to 4.4 waits."""
    interval = FittedInterval(parameter="interval_multiplier", low=1.0, high=1.1)
    profile = TimerProfile(name="mine", source="trials", confidence="measured", intervals=(interval,))
    prediction = Prediction(RetransmissionSpec(timeout_exponent=14, retries=3), profile)
    assert prediction.basis == "extrapolated, fitted interval"
    low_ns, high_ns = prediction.gives_up_interval_ns or (0, 0)
    assert low_ns == 4 * WAIT_14_NS
    assert high_ns == pytest.approx(4.4 * WAIT_14_NS)
