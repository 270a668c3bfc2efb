"""TIMELY step by step, with numbers worked out by hand. 40 Gb/s; delays of 50 and 500 us; segments of 16 packets.

One look at the delay is one call of `look`: a whole segment acknowledged. Slopes are in units of 20 us.
"""

from functools import partial

import pytest

from fabrictune.cc import timely
from fabrictune.cc.interface import UNLIMITED_CWND_BYTES
from tests.cc.sender import Sender

STEP_BPS = 10e6
Flow = partial(Sender, timely, first_rate_fraction=0.25)


def look(flow, *rtts_us):
    """Acknowledge a segment with each of these round trips."""
    for rtt_us in rtts_us:
        flow.acknowledge(0, rtt_us, packets=16)


def test_a_flow_starts_at_its_share_without_a_window():
    """A quarter of 40 Gb/s."""
    assert (Flow().rate_bps, Flow().cwnd_bytes) == (10e9, UNLIMITED_CWND_BYTES)


def test_the_delay_is_looked_at_once_a_segment():
    """15 packets are 15,000 B, short of 16,000."""
    flow = Flow()
    flow.acknowledge(0, 20, packets=15)
    assert flow.rate_bps == 10e9
    flow.acknowledge(0, 20)
    assert flow.rate_bps == 10e9 + STEP_BPS


def test_below_the_low_delay_the_rate_rises_on_any_slope():
    """20 to 45 us would be a slope of 1.1."""
    flow = Flow()
    look(flow, 20, 45)
    assert flow.rate_bps == 10e9 + 2 * STEP_BPS


def test_above_the_high_delay_the_rate_falls_on_any_slope():
    """1,000 us: 1 - 0.8 (1 - 500/1000) = 0.6; 800 us, though less: 1 - 0.8 * 3/8 = 0.7."""
    flow = Flow()
    look(flow, 1000)
    assert flow.rate_bps == pytest.approx(6e9)
    look(flow, 800)
    assert flow.rate_bps == pytest.approx(4.2e9)


def test_between_them_the_rate_falls_with_the_slope():
    """100 to 104 us, weighed 0.875, is 3.5 us, a slope of 0.175: 1 - 0.8 * 0.175 = 0.86; the first look has none."""
    flow = Flow()
    look(flow, 100, 104)
    assert flow.rate_bps == pytest.approx((10e9 + STEP_BPS) * 0.86)


@pytest.mark.parametrize(("rtt_us", "num_rises"), [(49.9, 0), (50, 1), (500, 1)])
def test_both_delays_belong_to_what_is_between_them(rtt_us, num_rises):
    """There a flat delay is a rise of a row; below T_low it is one as well, but of none."""
    flow = Flow()
    look(flow, rtt_us)
    assert (flow.rate_bps, flow.num_rises) == (10e9 + STEP_BPS, num_rises)


def test_the_fifth_rise_in_a_row_is_five_steps():
    """1 + 1 + 1 + 1 + 5; a look below the low delay ends the row."""
    flow = Flow()
    look(flow, *[100] * 5)
    assert flow.rate_bps == 10e9 + 9 * STEP_BPS
    look(flow, 30, 100)
    assert flow.num_rises == 0  # the way up from 30 us is a slope above 0


def test_a_slope_below_one_ends_a_row_of_rises():
    """100 to 101 us, weighed 0.875, is a slope of 0.04."""
    flow = Flow()
    look(flow, 100, 100)
    assert flow.num_rises == 2
    look(flow, 101)
    assert flow.num_rises == 0


def test_the_patched_form_weighs_a_step_against_a_cut_by_distance():
    """Flat at 100 us: half a step, less 0.008 * 1/2 * (100 - 50)/50 of the rate."""
    flow = Flow(is_patched=1)
    look(flow, 100)
    assert flow.rate_bps == pytest.approx(STEP_BPS / 2 + 10e9 * (1 - 0.004))


@pytest.mark.parametrize(("slope_us", "weight"), [(-20, 0), (-5, 0.0), (0, 0.5), (2.5, 0.75), (5, 1), (40, 1)])
def test_the_patched_weight_is_a_line_between_slopes_of_a_quarter(slope_us, weight):
    """2 * slope / 20 us + 1/2, from 0 to 1; the newest change is all of the slope here."""
    flow = Flow(is_patched=1, slope_gain=1)
    look(flow, 100)
    before_bps = flow.rate_bps
    look(flow, 100 + slope_us)
    excess = (100 + slope_us - 50) / 50
    assert flow.rate_bps == pytest.approx(STEP_BPS * (1 - weight) + before_bps * (1 - 0.008 * weight * excess))


def test_the_patched_form_rests_where_its_analysis_says():
    """One flow of 10 Gb/s: 50 us * (1 + 10e6 / (0.008 * 10e9)) = 56.25 us leaves the rate as it is."""
    flow = Flow(is_patched=1)
    look(flow, 56.25, 56.25)
    assert flow.rate_bps == pytest.approx(10e9, rel=1e-12)


def test_rates_stay_between_the_smallest_and_line_rate():
    """A hundred looks at 10 ms, then thousands at 10 us."""
    flow = Flow(min_rate_bps=1e9, additive_increase_bps=1e9)
    look(flow, *[10_000] * 100)
    assert flow.rate_bps == 1e9
    look(flow, *[10] * 100)
    assert flow.rate_bps == 40e9
