"""Swift step by step, with numbers worked out by hand. 40 Gb/s, 10 us unloaded, packets of 1,000 B, four links.

Without flow scaling the default target is 25 + 4 * 1 = 29 us.
"""

from functools import partial

import numpy as np
import pytest

from fabrictune.cc import swift
from fabrictune.cc.swift import target_delay_ps
from tests.cc.sender import Sender

Flow = partial(Sender, swift, flow_scaling_range_ps=0)


def test_a_flow_starts_with_what_the_unloaded_path_holds():
    """40 Gb/s over 10 us is 50,000 B, 50 packets; the paper has no pace above one packet."""
    flow = Flow()
    assert flow.window_packets == [50, 50]
    assert (flow.cwnd_bytes, flow.rate_bps) == (50_000, 40e9)


def test_below_the_target_a_window_of_acknowledgements_adds_one_packet():
    """Each of 50 acknowledgements adds 1/window, the window growing a little on the way: 1.0 less 1 %."""
    flow = Flow()
    for _ in range(50):
        flow.acknowledge(10, 28.9)
    assert flow.window_packets[0] == pytest.approx(51, abs=0.011)


def test_a_window_below_one_packet_grows_by_a_packet_an_acknowledgement():
    """Algorithm 1: cwnd < 1 adds ai * num_acked."""
    flow = Flow()
    flow.flow["window_packets"] = 0.25
    flow.acknowledge(10, 20)
    assert flow.window_packets[0] == 1.25


def test_at_the_target_a_window_stays():
    """Neither growth nor excess, and the time of a cut that takes nothing counts."""
    flow = Flow()
    flow.acknowledge(29, 29)
    assert (flow.window_packets[0], flow.decrease_time_ps[0]) == (50, 29_000_000)


def test_above_the_target_the_excess_is_cut_once_a_round_trip():
    """40 us against 29: 1 - 0.8 * 11/40 = 0.78 of 50 packets is 39; again only 40 us later."""
    flow = Flow()
    flow.acknowledge(40, 40)
    assert flow.window_packets[0] == pytest.approx(39)
    flow.acknowledge(79.9, 40)
    assert flow.window_packets[0] == pytest.approx(39)
    flow.acknowledge(80, 40)
    assert flow.window_packets[0] == pytest.approx(39 * 0.78)


def test_no_cut_takes_more_than_half():
    """290 us against 29: 0.8 * 0.9 would be 72 %."""
    flow = Flow()
    flow.acknowledge(290, 290)
    assert flow.window_packets[0] == 25


def test_delay_in_end_hosts_is_not_the_fabrics():
    """Of 80 us 60 passed in the end host: the fabric's 20 are below its target, 60 * 1/4 = 15 below the host's."""
    flow = Flow()
    flow.acknowledge(80, 80, endpoint_us=60)
    assert flow.endpoint_delay_ps == 15e6
    assert flow.window_packets == [50.02, 50.02]


def test_the_smaller_window_holds():
    """Smoothed to 250 us by the fourth, the host's delay is above 100 us: its window shrinks, the fabric's grows."""
    flow = Flow(endpoint_gain=1)
    flow.acknowledge(300, 270, endpoint_us=250)
    fabric_packets, endpoint_packets = flow.window_packets
    assert fabric_packets == 50.02
    assert endpoint_packets == pytest.approx(50 * 0.52)  # 1 - 0.8 * 150/250
    assert flow.cwnd_bytes == endpoint_packets * 1000


def test_hops_and_small_windows_lengthen_the_target():
    """25 + 4 * 1, and at one packet 32.6554 - 3.26554 more, rounded as published: 58.39 us."""
    params = Sender(swift).law.params.view(np.recarray)[0]
    assert target_delay_ps(params, 1.0, 4) / 1e6 == pytest.approx(58.39, abs=0.005)
    assert target_delay_ps(params, 0.001, 4) / 1e6 == 129
    assert target_delay_ps(params, 1e5, 6) / 1e6 == 31


def test_timeouts_halve_and_the_fifth_in_a_row_resets():
    """50, 25, 12.5, 6.25, 3.125 after four, each a round trip after the last; then the smallest window."""
    flow = Flow()
    for timeout in range(1, 5):
        flow.call("on_timeout", timeout * 10_000_000)
    assert flow.window_packets == [3.125, 3.125]
    flow.call("on_timeout", 50_000_000)
    assert flow.window_packets == [0.001, 0.001]


@pytest.mark.parametrize("progress", ["on_ack", "on_nack"])
def test_progress_ends_a_row_of_timeouts(progress):
    """Both an acknowledgement and a gap tell that packets arrive."""
    flow = Flow(retransmit_reset_threshold=2)
    flow.call("on_timeout", 10_000_000)
    if progress == "on_ack":
        flow.acknowledge(11, 10)
    else:
        flow.call("on_nack", 11_000_000)
    flow.call("on_timeout", 30_000_000)
    assert flow.window_packets[0] > 10


def test_gaps_halve_once_a_round_trip():
    """The second is 5 us after the first, the third 10 us."""
    flow = Flow()
    for now_us, window_packets in ((10, 25), (15, 25), (20, 12.5)):
        flow.call("on_nack", now_us * 10**6)
        assert flow.window_packets[0] == window_packets


def test_windows_stay_between_their_bounds():
    """A sender that cannot pace below a packet has 1 as its least."""
    flow = Flow(min_cwnd_packets=1, max_cwnd_packets=51)
    for now_us in range(10, 200, 10):
        flow.acknowledge(now_us, 10, packets=50)
    assert flow.window_packets == [51, 51]
    for now_us in range(1000, 20_000, 1000):
        flow.acknowledge(now_us, 1000)
    assert flow.cwnd_bytes == 1000
