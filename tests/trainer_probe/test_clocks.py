"""Moments on clocks that do and do not begin together."""

import time

from fabrictune.trainer_probe.clocks import Moment


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
