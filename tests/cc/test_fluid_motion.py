"""The fluid model's equations, stepped."""

import dataclasses

import pytest

from fabrictune.cc.fluid import chance_of_a_mark, expiries_per_packet
from fabrictune.cc.fluid_motion import integrate
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
    """At 50 %, a million packets in a row are not spared."""
    assert expiries_per_packet(0.5, 1e6) == 0


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


def test_flows_begin_before_an_empty_queue():
    """After no time the state is what it began with, alpha 1 as in the paper."""
    state = integrate(paper_fluid(2), first_rate_bps=[30e9, 10e9], duration_s=0.0, step_s=1e-5)
    assert state.rate_bps == pytest.approx((30e9, 10e9))
    assert (state.alpha, state.queue_bytes) == ((1.0, 1.0), 0.0)
