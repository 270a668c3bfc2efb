"""The fluid model's equations, stepped."""

import dataclasses
import math

import pytest

from fabrictune.cc.fluid import chance_of_a_mark, expiries_per_packet, solve_fixed_point
from fabrictune.cc.fluid_motion import _mark_fraction, integrate
from fabrictune.conformance.cc.dcqcn_fluid import paper_fluid


def test_the_chance_of_a_mark_is_one_less_all_spared():
    """Three packets at 10 %: 1 - 0.9**3 = 0.271."""
    assert chance_of_a_mark(0.1, 3) == pytest.approx(0.271)
    assert chance_of_a_mark(0.0, 3) == 0


def test_expiries_count_packets_between_marks():
    """A counter of 2 at 50 %: runs of k unmarked packets expire k // 2 times; p / ((1 - p)**-2 - 1) = 0.5 / 3."""
    assert expiries_per_packet(0.5, 2) == pytest.approx(1 / 6)
    assert expiries_per_packet(0.5, 2, after=1) == pytest.approx(1 / 6 / 4)  # one more pair spared: 0.5**2


def test_without_marks_a_counter_expires_by_count_alone():
    """Every 137.5 packets, however many expiries came before."""
    assert expiries_per_packet(0.0, 137.5) == expiries_per_packet(0.0, 137.5, after=5) == 1 / 137.5


def test_a_counter_too_long_for_its_marks_never_expires():
    """At 50 %, a million packets in a row are not spared; from a chance of e**-700 on there is no number for it."""
    assert expiries_per_packet(0.5, 1e6) == 0
    assert expiries_per_packet(0.5, 699.9 / math.log(2)) > 0
    assert expiries_per_packet(0.5, 700.1 / math.log(2)) == 0


def test_an_underloaded_port_has_no_queue_and_rates_rise():
    """Two flows of 5 Gb/s on 40 Gb/s: nothing is marked, both gain."""
    state = integrate(paper_fluid(2), first_rate_bps=[5e9, 5e9], duration_s=0.002, step_s=1e-5)
    assert state.queue_bytes == 0
    assert min(state.rate_bps) > 5e9


def test_a_smaller_gain_changes_the_way_and_not_the_end():
    """g 1/16 and 1/256 rest at the same queue, since at rest alpha equals what it averages."""
    ends = [
        integrate(
            dataclasses.replace(paper_fluid(2), alpha_gain=gain),
            first_rate_bps=[30e9, 10e9],
            duration_s=0.3,
            step_s=2e-5,
        )
        for gain in (1 / 16, 1 / 256)
    ]
    assert ends[0].queue_bytes == pytest.approx(ends[1].queue_bytes, rel=1e-4)
    root = solve_fixed_point(paper_fluid(2))
    assert ends[0].queue_bytes == pytest.approx(root.queue_bytes, rel=0.01)
    assert ends[0].alpha == pytest.approx([root.alpha] * 2, rel=0.01)
    assert ends[0].rate_bps == pytest.approx([root.rate_bps] * 2, rel=0.01)


def test_flows_begin_before_an_empty_queue():
    """After no time the state is what it began with, alpha 1 as in the paper."""
    state = integrate(paper_fluid(2), first_rate_bps=[30e9, 10e9], duration_s=0.0, step_s=1e-5)
    assert state.rate_bps == pytest.approx((30e9, 10e9))
    assert (state.alpha, state.queue_bytes) == ((1.0, 1.0), 0.0)


@pytest.mark.parametrize(
    ("queue_bytes", "mark_fraction"),
    [(0, 0), (5_000, 0), (102_500, 0.005), (200_000, 0.01), (200_001, 0.5)],
)
def test_marks_follow_the_slope_of_red(queue_bytes, mark_fraction):
    """Nothing up to Kmin, 1 % at Kmax and in between in proportion; beyond it every second packet."""
    assert _mark_fraction(paper_fluid(2), queue_bytes) == pytest.approx(mark_fraction)


def test_one_step_by_hand():
    """One flow at half of 40 Gb/s, empty queue: no marks, so alpha decays by g / K a second and the rate is averaged.

    Target and rate are alike, so only the additive increase moves the target: 40 Mb/s for each expiry of the timer
    (every 55 us) and of the byte counter (every 10 MB, 4 ms at 20 Gb/s).
    """
    step_s = 1e-6
    fluid = dataclasses.replace(paper_fluid(1), fast_recovery_stages=0)
    one, two = (integrate(fluid, first_rate_bps=[20e9], duration_s=steps * step_s, step_s=step_s) for steps in (1, 2))
    assert one.alpha == pytest.approx((1 - step_s / 256 / 55e-6,), rel=1e-12)
    assert one.rate_bps == (20e9,)
    expiries_per_s = 1 / 55e-6 + 1 / 4e-3
    target_rise_bps = 40e6 * expiries_per_s * step_s
    assert two.rate_bps[0] - 20e9 == pytest.approx(target_rise_bps / 2 * expiries_per_s * step_s, rel=1e-4)


def test_a_queue_grows_by_what_is_too_much():
    """Two flows at 40 Gb/s on 40: 5,000 B a microsecond."""
    state = integrate(paper_fluid(2), first_rate_bps=[40e9, 40e9], duration_s=1e-6, step_s=1e-6)
    assert state.queue_bytes == pytest.approx(5_000)
