"""Moments on clocks that do and do not begin together."""

import time

from fabrictune.trainer_probe.clocks import ClockOffset, Moment, clock_offset


def moment(clock_ns: int, time_of_day_ns: int, boot: int) -> Moment:
    return Moment(clock_ns=clock_ns, time_of_day_ns=time_of_day_ns, boot_high=1, boot_low=boot)


def test_processes_of_a_machine_share_its_clock() -> None:
    """Whatever was read as the time of day in between."""
    assert moment(500, 10_000, boot=7).on_clock_of(moment(900, 77_777, boot=7)) == 500


def test_another_machines_clock_is_reached_by_the_time_of_day() -> None:
    """Taken 30 ns later by the time of day, at 900 of the other clock: that showed 870 then."""
    assert moment(500, 10_000, boot=7).on_clock_of(moment(900, 10_030, boot=8)) == 870


def test_a_moment_travels_as_numbers_of_64_bits() -> None:
    """As many as a tensor of whole numbers holds."""
    now = Moment.now(time.perf_counter_ns())
    assert all(-(2**63) <= number < 2**63 for number in now.numbers())
    assert Moment.of(now.numbers()) == now
    later = Moment.now(time.perf_counter_ns())
    assert (later.boot_high, later.boot_low) == (now.boot_high, now.boot_low)
    assert now.on_clock_of(later) == now.clock_ns <= later.clock_ns


def test_ranks_of_a_machine_have_one_clock_whatever_meetings_say() -> None:
    found = clock_offset(moment(500, 10_000, boot=7), moment(900, 77_777, boot=7), [(0, 1)], [(900, 950)])
    assert found == ClockOffset(offset_ns=0, error_ns=0)


def test_meetings_bound_the_error_of_the_time_of_day() -> None:
    """By it the clock is 400 ahead; meetings allow 380 to 430 and 390 to 440, so that 400 is off by at most 30."""
    own, first = moment(900, 10_000, boot=7), moment(500, 10_000, boot=8)
    found = clock_offset(own, first, [(1000, 1050), (2000, 2050)], [(620, 620), (1610, 1610)])
    assert found == ClockOffset(offset_ns=400, error_ns=30)


def test_a_time_of_day_that_meetings_exclude_is_not_believed() -> None:
    """By it the clock is 11.56 s ahead; nobody can have left before the others came at 380 to 430."""
    own, first = moment(900, 10_000, boot=7), moment(500, 11_560_010_000, boot=8)
    found = clock_offset(own, first, [(1000, 1050)], [(620, 620)])
    assert 380 <= found.offset_ns <= 430
    assert found.error_ns == 50
