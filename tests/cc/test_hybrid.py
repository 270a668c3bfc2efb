"""The hybrid law step by step, with numbers worked out by hand.

40 Gb/s, 10 us unloaded: 50 packets of 1,000 B. Without flow scaling the target is 10 + 10 = 20 us.
"""

from functools import partial

import pytest

from fabrictune.cc import hybrid
from tests.cc.sender import Sender

Flow = partial(Sender, hybrid, flow_scaling_range_ps=0)
GAIN = 1 / 16


def test_a_flow_starts_at_line_rate_with_what_the_unloaded_path_holds():
    """50 packets over 10 us are 40 Gb/s."""
    flow = Flow()
    assert (flow.window_packets, flow.cwnd_bytes, flow.rate_bps) == (50, 50_000, 40e9)


def test_below_the_target_a_window_of_acknowledgements_adds_one_packet():
    """50 of 50 at once."""
    flow = Flow()
    flow.acknowledge(10, 19, packets=50)
    assert flow.window_packets == 51


def test_at_the_target_a_window_stays():
    """Nothing is left to grow into, and there is no excess to cut; it counts as a cut all the same."""
    flow = Flow()
    flow.acknowledge(20, 20, packets=50)
    assert (flow.window_packets, flow.decrease_time_ps) == (50, 20_000_000)


def test_above_the_target_the_excess_is_cut_once_a_round_trip():
    """40 us against 20: 1 - 0.8 * 20/40 = 0.6 of 50; the pace falls with it, 30/50 of 40 Gb/s."""
    flow = Flow()
    flow.acknowledge(40, 40)
    assert flow.window_packets == pytest.approx(30)
    assert flow.rate_bps == pytest.approx(24e9)
    flow.acknowledge(79, 40)
    assert flow.window_packets == pytest.approx(30)


def test_delay_in_end_hosts_does_not_count():
    """Of 40 us 25 passed in the end host."""
    flow = Flow()
    flow.acknowledge(40, 40, endpoint_us=25, packets=50)
    assert flow.window_packets == 51


def test_the_first_notification_halves_the_window_without_waiting_for_an_acknowledgement():
    """Alpha is 1."""
    flow = Flow()
    flow.call("on_cnp", 10_000_000)
    assert (flow.window_packets, flow.rate_bps) == (25, 20e9)


def test_both_signals_together_cut_once_a_round_trip():
    """The notification at 45 us finds that the delay has cut at 40, and is counted all the same."""
    flow = Flow()
    flow.acknowledge(40, 40)
    flow.call("on_cnp", 45_000_000)
    assert flow.window_packets == pytest.approx(30)
    assert flow.num_cnps == 1


def test_growth_waits_a_round_trip_after_a_notification():
    """At 25 us the notification of 10 us is 15 old, and the round trip takes 18; at 28 it is old enough."""
    flow = Flow(recovery_fraction=0)
    flow.call("on_cnp", 10_000_000)
    flow.acknowledge(25, 18, packets=25)
    assert flow.window_packets == 25
    flow.acknowledge(28, 18, packets=25)
    assert flow.window_packets == 26


def test_half_of_a_cut_by_ecn_comes_back_in_each_round_trip_below_the_target():
    """25 of 50 lost: 12.5 back and one acknowledged packet's 1/37.5, but not twice in a round trip."""
    flow = Flow()
    flow.call("on_cnp", 10_000_000)
    flow.acknowledge(28, 18)
    assert flow.window_packets == pytest.approx(37.5 + 1 / 37.5)
    flow.acknowledge(29, 18)
    assert flow.window_packets == pytest.approx(37.5 + 2 / 37.5, abs=1e-4)
    flow.acknowledge(46, 18)
    assert flow.window_packets == pytest.approx((37.5 + 2 / 37.5 + 50) / 2, abs=0.03)


def test_a_cut_by_delay_stands():
    """30 of 50 are left, and one more comes in a round trip."""
    flow = Flow()
    flow.acknowledge(40, 40)
    flow.acknowledge(80, 19, packets=30)
    assert flow.window_packets == pytest.approx(31)


def test_alpha_is_the_share_of_round_trips_with_a_notification():
    """Two more within the same 10 us do not count; one 40 us later counts for itself and three quiet round trips."""
    flow = Flow()
    flow.call("on_cnp", 10_000_000)
    assert flow.alpha == 1
    flow.call("on_cnp", 15_000_000)
    assert flow.alpha == 1
    flow.call("on_cnp", 50_000_000)
    assert flow.alpha == pytest.approx((1 - GAIN) ** 4 + GAIN)


def test_a_rare_notification_costs_little():
    """After 1,000 quiet round trips alpha is 1/16 again: 1/32 of the window."""
    flow = Flow()
    flow.call("on_cnp", 10_000_000)
    flow.flow["window_packets"] = 32
    flow.call("on_cnp", 10_010_000_000)
    assert flow.window_packets == pytest.approx(31)


@pytest.mark.parametrize("loss", ["on_nack", "on_timeout"])
def test_losses_take_the_largest_share_once_a_round_trip(loss):
    """Half, twice."""
    flow = Flow()
    for now_us, window_packets in ((10, 25), (15, 25), (20, 12.5)):
        flow.call(loss, now_us * 10**6)
        assert flow.window_packets == window_packets


def test_a_window_below_one_packet_lengthens_the_target():
    """At 0.1 packets by the whole range: 10 + 10 + 40 us, so that 59 us are below it."""
    flow = Sender(hybrid)
    flow.flow["window_packets"] = 0.1
    flow.acknowledge(100, 59)
    assert flow.window_packets == 1.1


def test_windows_stay_between_their_bounds():
    """A path at its target holds 100 packets at line rate; the pace is then line rate, not twice that."""
    flow = Flow()
    for now_us in range(10, 2000, 10):
        flow.acknowledge(now_us, 10, packets=50)
    assert (flow.window_packets, flow.rate_bps) == (100, 40e9)
    for now_us in range(10**4, 10**6, 10**4):
        flow.acknowledge(now_us, 1000)
    assert flow.cwnd_bytes == pytest.approx(1)
