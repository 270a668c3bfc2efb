"""Waits of a reliable queue pair: the standard's, and a ConnectX-6's as they were measured."""

from itertools import pairwise
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.retransmission import (
    CONNECTX_6,
    NEVER_PS,
    RNR_RETRIES_FOREVER,
    STANDARD,
    TimerModel,
    nominal_timeout_ps,
    rnr_wait_ps,
)

MS = 10**9


def test_the_nominal_timeout_doubles_with_the_exponent() -> None:
    """4.096 us * 2**14 is 67.108864 ms; exponent 0 turns the timer off."""
    assert nominal_timeout_ps(14) == 67_108_864_000
    assert nominal_timeout_ps(0) == NEVER_PS


def test_seven_retries_are_eight_waits() -> None:
    """The last one ends in failure."""
    assert STANDARD.waits_ps(14, 7) == (67_108_864_000,) * 8
    assert STANDARD.waits_ps(0, 7) == (NEVER_PS,)


def test_early_retransmissions_end_where_their_steps_outgrow_the_timeout() -> None:
    """T 14 counts as 16, 268 ms: the step from 239 to 440.4 ms is the last one below; six waits of 537 ms follow."""
    waits_ps = CONNECTX_6.waits_ps(14, 7)
    assert [wait / MS for wait in waits_ps[:5]] == [12, 59, 67, 101, 201.4]
    assert waits_ps[5:] == (536_800_000_000, *(2 * nominal_timeout_ps(16),) * 5)


def test_one_retry_is_the_early_series_alone() -> None:
    """R 1 leaves R - 1 = 0 regular waits: the study saw T 14 give up after 440.6 ms and T 17 after 976.8 ms."""
    assert sum(CONNECTX_6.waits_ps(14, 1)) / MS == pytest.approx(440.4)
    assert sum(CONNECTX_6.waits_ps(17, 1)) / MS == pytest.approx(977.2)


def test_the_wait_after_the_series_is_no_longer_than_its_next_step() -> None:
    """T 17: the next step would be 1782.5 - 977.2 = 805.3 ms, less than the regular 1073.7 ms."""
    assert CONNECTX_6.waits_ps(17, 3)[-2:] == (805_300_000_000, 2 * nominal_timeout_ps(17))


def test_a_shorter_first_wait_is_only_the_first() -> None:
    """T 14 with 1.5 first: 1.5 + 1 + 1 nominal waits for two retries."""
    nominal_ps = nominal_timeout_ps(14)
    assert TimerModel(first_wait_multiplier=1.5).waits_ps(14, 2) == (nominal_ps * 3 // 2, nominal_ps, nominal_ps)


def test_a_count_without_limit_never_fails() -> None:
    """Waits follow one another without end, for which a thousand stand; the one that would fail never passes."""
    waits_ps = TimerModel(endless_retries=7).waits_ps(14, 7)
    assert waits_ps == (nominal_timeout_ps(14),) * 1024 + (NEVER_PS,)


def test_waits_without_limit_stay_within_the_engines_clock() -> None:
    """T 31 is 2.4 hours: a thousand of them are more picoseconds than 63 bits hold; 131 are 13 days."""
    *waits_ps, last_ps = TimerModel(endless_retries=7).waits_ps(31, 7)
    assert len(waits_ps) == 2**60 // nominal_timeout_ps(31) == 131
    assert last_ps == NEVER_PS


def test_a_queue_pair_waits_at_least_once() -> None:
    """One retry, none of it regular, and an early series that is too slow for T 1 of 8.2 us: one regular wait."""
    model = TimerModel(extra_waits=-1, early_ns=(10**6,), fewest_retries=1)
    assert model.waits_ps(1, 1) == (8_192_000,)


def test_impossible_models_are_refused_with_all_that_is_wrong() -> None:
    """A profile may come from anywhere."""
    with pytest.raises(InputError) as raised:
        TimerModel(floor_exponent=32, interval_multiplier=0.0, early_ns=(5, 5))
    assert str(raised.value) == (
        "floor_exponent: 32\n  allowed: 0 to 31\n"
        "interval_multiplier: 0\n  allowed: 0.1 to 16\n"
        "early_ns: times in another order, or too many\n  allowed: at most 64 times, each after the one before it"
    )


@pytest.mark.parametrize(("timer_code", "wait_us"), [(0, 655_360), (1, 10), (12, 640), (31, 491_520)])
def test_timer_codes_are_the_standards(timer_code: int, wait_us: int) -> None:
    """InfiniBand volume 1, table 45; NCCL sets 12."""
    assert rnr_wait_ps(timer_code) == wait_us * 10**6


def test_timer_codes_rise_by_turns_of_three_halves_and_four_thirds() -> None:
    """Table 45 doubles every two codes: 0.01 ms * 2**(code / 2) for even ones from 2 on, one and a half times the code
    before for odd ones from 3 on; code 0 is what 32 would be.
    """
    even_us = {code: 10 * 2 ** (code // 2) for code in range(2, 34, 2)}
    assert rnr_wait_ps(0) == even_us[32] * 10**6
    for code in range(2, 32, 2):
        assert rnr_wait_ps(code) == even_us[code] * 10**6
        assert rnr_wait_ps(code + 1) == even_us[code] * 3 // 2 * 10**6


def test_never_is_later_than_any_wait() -> None:
    """The slowest adapter that can be described waits 16 times 2.4 hours; twice NEVER is the end of 63 bits."""
    assert TimerModel(interval_multiplier=16.0).interval_ps(31) < NEVER_PS
    assert 2 * NEVER_PS == 2**63


def test_the_defaults_are_the_standards() -> None:
    """One wait more than retries, all alike, every exponent and count as it is; seven RNR retries are endless."""
    assert (
        TimerModel()
        == STANDARD
        == TimerModel(
            floor_exponent=0,
            interval_multiplier=1.0,
            first_wait_multiplier=1.0,
            extra_waits=1,
            early_ns=(),
            fewest_retries=0,
            endless_retries=None,
        )
    )
    assert RNR_RETRIES_FOREVER == 7


@pytest.mark.parametrize(
    ("name", "least", "most", "beyond"),
    [
        ("floor_exponent", 0, 31, 1),
        ("interval_multiplier", 0.1, 16.0, 0.01),
        ("first_wait_multiplier", 0.1, 16.0, 0.01),
        ("extra_waits", -1, 7, 1),
        ("fewest_retries", 0, 7, 1),
        ("endless_retries", 0, 7, 1),
    ],
)
def test_every_number_of_a_model_has_a_range(name: str, least: float, most: float, beyond: float) -> None:
    """Both ends are in it."""
    for end in (least, most):
        fitting: dict[str, Any] = {name: end}
        assert getattr(TimerModel(**fitting), name) == end
    for value in (least - beyond, most + beyond):
        outside: dict[str, Any] = {name: value}
        with pytest.raises(InputError) as raised:
            TimerModel(**outside)
        assert str(raised.value) == f"{name}: {value:g}\n  allowed: {least:g} to {most:g}"


def test_a_step_as_long_as_the_nominal_timeout_is_taken() -> None:
    """Times are known to a thousandth: T 10 is 4.194304 ms, and so is the first step; 4.2 ms are more than that."""
    nominal_ns = nominal_timeout_ps(10) // 1000
    assert TimerModel(early_ns=(nominal_ns,)).waits_ps(10, 0) == (nominal_ns * 1000, nominal_ns * 1000)
    assert TimerModel(early_ns=(4_200_000,)).waits_ps(10, 0) == (nominal_ns * 1000,)


def test_the_connectx_6s_series_is_as_measured() -> None:
    """Tables A1 and B of the study, and its rule beyond them: a step is the nominal timeout of the next exponent."""
    early_ms = [12, 71, 138, 239, 440.4, 977.2, 1782.5, 3930, 8225, 16_815, 33_995, 68_354, 137_074]
    assert [time_ns / 1e6 for time_ns in CONNECTX_6.early_ns] == early_ms
    for exponent, (sooner_ms, later_ms) in enumerate(pairwise(early_ms[6:]), start=19):
        assert later_ms - sooner_ms == pytest.approx(nominal_timeout_ps(exponent) / MS, abs=1)


def test_an_early_series_has_up_to_64_times() -> None:
    """The first may be a nanosecond after the sending."""
    assert len(TimerModel(early_ns=tuple(range(1, 65))).early_ns) == 64
    with pytest.raises(InputError, match="early_ns"):
        TimerModel(early_ns=tuple(range(1, 66)))
