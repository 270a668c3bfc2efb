"""The closed form of Barre's stable queue, where it can be worked out by hand."""

from dataclasses import replace

import pytest

from fabrictune.cc.barre_fluid import BarreFluid, stable_mark_fraction, stable_queue_bytes

# Rounds of 10 us and 12.5 Gb/s: 15.625 packets of 1000 B. All steps 10 Mb/s, a cut takes 3 % of 12.5 Gb/s.
FLUID = BarreFluid(
    num_flows=8,
    capacity_bps=100e9,
    packet_bytes=1000,
    rtt_ps=10_000_000,
    kmin_bytes=400_000,
    kmax_bytes=1_600_000,
    pmax_fraction=0.2,
    fast_increase_fraction=0.0001,
)


def test_with_steps_of_one_size_the_root_is_explicit():
    """10 x / (1 - x) = 375 gives x = 375/385, and p = 1 - x**(1/15.625) = 0.00168."""
    assert stable_mark_fraction(FLUID) == pytest.approx(1 - (375 / 385) ** (1 / 15.625), rel=1e-9)


def test_the_queue_lies_on_the_marking_slope():
    """0.00168 of 0.2 is 0.84 % of the way from 400 KB to 1,600 KB."""
    p = stable_mark_fraction(FLUID)
    assert stable_queue_bytes(FLUID) == pytest.approx(400_000 + p / 0.2 * 1_200_000)


def test_slow_flows_wait_for_their_bytes():
    """At 100 Mb/s 8 KB take 640 us and not 10: a round has 8 packets of 1000 B, whatever the round trip."""
    slow = replace(FLUID, num_flows=1000)
    assert stable_mark_fraction(slow) == pytest.approx(stable_mark_fraction(replace(slow, rtt_ps=1)))
    assert stable_mark_fraction(slow) < stable_mark_fraction(replace(slow, lock_bytes=0)) / 5


def test_more_marks_than_red_gives_are_no_fixed_point():
    """Steps of 1 Gb/s need more CNPs than a marking of 0.2 % makes."""
    assert stable_queue_bytes(replace(FLUID, additive_increase_bps=1e9, pmax_fraction=0.002)) is None


def test_larger_steps_come_after_some_rounds():
    """Two sizes of steps: with x = 0.9, five rounds at 10 Mb/s and then 0.1 % of 100 Gb/s, 100 Mb/s.

    (10 * 0.9 + 90 * 0.9**6) / 0.1 Mb/s is what a cut must take for p = 1 - 0.9**(1/15.625).
    """
    added_bps = (10e6 * 0.9 + 90e6 * 0.9**6) / 0.1
    fluid = replace(FLUID, fast_increase_fraction=0.001, kept_fraction=1 - added_bps / 12.5e9)
    assert fluid.fast_increase_rounds == 5
    assert stable_mark_fraction(fluid) == pytest.approx(1 - 0.9 ** (1 / 15.625), rel=1e-9)


def test_marks_up_to_red_s_most_have_a_queue():
    """At Pmax the queue is at Kmax; just below it there is none."""
    p = stable_mark_fraction(FLUID)
    assert stable_queue_bytes(replace(FLUID, pmax_fraction=p)) == pytest.approx(1_600_000)
    assert stable_queue_bytes(replace(FLUID, pmax_fraction=p * (1 - 1e-9))) is None
