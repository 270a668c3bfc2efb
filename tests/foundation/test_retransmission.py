"""Waits of a reliable queue pair: the standard's, and a ConnectX-6's as they were measured."""

import pytest

from foundation.retransmission import (
    CONNECTX_6_EARLY_MS,
    CONNECTX_6_FLOOR,
    CONNECTX_6_MULTIPLIER,
    NEVER_PS,
    nominal_timeout_ps,
    retransmission_waits_ps,
    rnr_wait_ps,
)

MS = 10**9


def test_the_nominal_timeout_doubles_with_the_exponent() -> None:
    """4.096 us * 2**14 is 67.108864 ms; exponent 0 turns the timer off."""
    assert nominal_timeout_ps(14) == 67_108_864_000
    assert nominal_timeout_ps(0) == NEVER_PS


def test_seven_retries_are_eight_waits() -> None:
    """The last one ends in failure."""
    assert retransmission_waits_ps(14, 7) == (67_108_864_000,) * 8
    assert retransmission_waits_ps(0, 7) == (NEVER_PS,)


@pytest.mark.parametrize(
    ("exponent", "measured_ms"), [(8, 3_660), (14, 3_660), (16, 3_660), (18, 14_670), (20, 59_770)]
)
def test_a_connectx_6_takes_as_long_as_was_measured(exponent: int, measured_ms: float) -> None:
    """R = 7: detection after R * I - c, read to 10 ms in the study; I is twice the nominal of max(T, 16)."""
    waits_ps = retransmission_waits_ps(
        exponent,
        7,
        floor_exponent=CONNECTX_6_FLOOR,
        interval_multiplier=CONNECTX_6_MULTIPLIER,
        early_ms=CONNECTX_6_EARLY_MS,
    )
    assert sum(waits_ps) / MS == pytest.approx(measured_ms, abs=10)


def test_early_retransmissions_end_where_their_steps_outgrow_the_timeout() -> None:
    """T 14 counts as 16, 268 ms: the step from 239 to 440 ms is the last one below; six waits of 537 ms follow."""
    waits_ps = retransmission_waits_ps(14, 7, floor_exponent=16, interval_multiplier=2, early_ms=CONNECTX_6_EARLY_MS)
    assert [wait / MS for wait in waits_ps[:5]] == [12, 59, 67, 101, 201]
    assert waits_ps[5:] == (2 * nominal_timeout_ps(16),) * 6


@pytest.mark.parametrize(("timer_code", "wait_us"), [(0, 655_360), (1, 10), (12, 640), (31, 491_520)])
def test_timer_codes_are_the_standards(timer_code: int, wait_us: int) -> None:
    """InfiniBand volume 1, table 45; NCCL sets 12."""
    assert rnr_wait_ps(timer_code) == wait_us * 10**6
