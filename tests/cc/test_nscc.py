"""NSCC case by case, with numbers worked out by hand. 40 Gb/s, 10 us unloaded, packets of 1,000 B.

The bandwidth-delay product is 50,000 B, a third of the reference network's, the largest window 75,000 B, the target
10 us. At the reference network alpha is four packets a round trip, fi five, eta 0.15.
"""

from functools import partial

import pytest

from fabrictune.cc import nscc
from tests.cc.sender import Sender

Flow = partial(Sender, nscc)
SCALING = 1 / 3


def in_flight(flow: Sender, packets: int) -> Sender:
    """Let a flow send packets."""
    for _ in range(packets):
        flow.call("on_send", 0, 1000)
    return flow


def test_a_flow_starts_with_one_and_a_half_bandwidth_delay_products():
    """40 Gb/s over 10 us is 50,000 B."""
    flow = Flow()
    assert (flow.cwnd_bytes, flow.rate_bps, flow.target_ps) == (75_000, 40e9, 10e6)
    assert flow.scaling == pytest.approx(SCALING)


def test_the_network_may_have_a_longer_round_trip():
    """20 us and three quarters of it."""
    flow = Flow(network_rtt_ps=20_000_000, target_fraction=0.75)
    assert (flow.cwnd_bytes, flow.target_ps) == (150_000, 15e6)


def test_a_shorter_round_trip_is_the_unloaded_one_from_then_on():
    """8 us make 40,000 B; the target stays."""
    flow = Flow()
    flow.acknowledge(10, 8)
    assert (flow.least_rtt_ps, flow.max_cwnd_bytes, flow.target_ps) == (8_000_000, 60_000, 10e6)
    flow.acknowledge(20, 9)
    assert flow.least_rtt_ps == 8_000_000


def test_time_in_the_receiving_host_is_no_delay():
    """Of 35 us 20 passed in the host: 5 us of delay, no 25."""
    flow = Flow(delay_gain=1.0)
    flow.acknowledge(40, 35, endpoint_us=20)
    assert flow.mean_delay_ps == 5e6


def test_proportional_increase_adds_what_is_left_of_the_target():
    """No mark, 4 of 10 us. A window of 20 in a round trip: 4 packets / 3 * 6 us / 12 us is 667 B; eta 50 B on top."""
    flow = Flow(adjust_packets=1e6)
    flow.flow["cwnd_bytes"] = 20_000
    for _ in range(20):
        flow.acknowledge(9.9, 14)
    assert flow.cwnd_bytes == 20_000
    flow.acknowledge(10, 14, packets=0)
    assert flow.cwnd_bytes == pytest.approx(20_000 + 4000 * SCALING * 6 / 12 + 150 * SCALING)


def test_growth_is_added_after_eight_packets():
    """Nine packets are more than 8,000 B; eta comes with the round trip only."""
    flow = Flow()
    flow.flow["cwnd_bytes"] = 20_000
    flow.acknowledge(5, 14, packets=8)
    assert flow.cwnd_bytes == 20_000
    flow.acknowledge(5, 14)
    assert flow.cwnd_bytes == pytest.approx(20_000 + 4000 * SCALING * 0.5 * 9000 / 20_000)


def test_fast_increase_begins_after_a_window_without_delay():
    """21 packets of a window of 20: the last adds a quarter of a third of itself, and so does every one after it."""
    flow = Flow(adjust_packets=1e6)
    flow.flow["cwnd_bytes"] = 20_000
    flow.acknowledge(5, 10.9, packets=20)
    assert (flow.cwnd_bytes, flow.is_fast) == (20_000, 0)
    flow.acknowledge(5, 10.9)
    assert flow.cwnd_bytes == pytest.approx(20_000 + 1000 * SCALING / 4)
    flow.acknowledge(5, 10.9, packets=12)
    assert flow.cwnd_bytes == pytest.approx(20_000 + 13_000 * SCALING / 4)
    flow.acknowledge(5, 11)
    assert (flow.is_fast, flow.clear_bytes) == (0, 0)


def test_what_was_gathered_is_added_once():
    """Growth and arrivals count from nought again, and less cannot be in flight than nothing."""
    flow = Flow()
    flow.acknowledge(5, 14, packets=9)
    assert (flow.growth_bytes2, flow.unadjusted_bytes, flow.in_flight_bytes) == (0, 0, 0)
    flow.call("on_trim", 6_000_000, 1000, 12_000_000, 0)
    assert flow.in_flight_bytes == 0


def test_fair_increase_adds_the_same_to_small_and_large_windows():
    """No mark, 15 us of delay: 5 packets / 3 in a round trip's window of acknowledgements, whatever the window."""
    for window_packets in (10, 60):
        flow = Flow(adjust_packets=1e6, steady_increase_packets=0)
        flow.flow["cwnd_bytes"] = window_packets * 1000
        for _ in range(window_packets):
            flow.acknowledge(9.9, 25)
        flow.acknowledge(10, 25, packets=0)
        assert flow.cwnd_bytes - window_packets * 1000 == pytest.approx(5000 * SCALING)


def test_a_mark_without_delay_changes_nothing():
    """The queue begins; the load balancer may still find another path."""
    flow = Flow(steady_increase_packets=0)
    flow.flow["cwnd_bytes"] = 20_000
    flow.acknowledge(10, 19, packets=20, is_marked=1)
    assert flow.cwnd_bytes == 20_000


def test_a_mark_at_the_target_ends_fast_increase_and_cuts_nothing():
    """A mean of 10 us is no excess over 10 us, and the time of the last cut stays; but a queue there is."""
    flow = Flow(delay_gain=1.0, steady_increase_packets=0)
    flow.flow["cwnd_bytes"] = 20_000
    flow.acknowledge(1, 10.5, packets=21)
    assert (flow.is_fast, flow.clear_bytes) == (1, 21_000)
    before_bytes = flow.cwnd_bytes
    flow.acknowledge(12, 20, is_marked=1)
    assert (flow.is_fast, flow.clear_bytes, flow.cwnd_bytes) == (0, 0, before_bytes)
    flow.acknowledge(13, 30, is_marked=1)
    assert flow.cwnd_bytes == pytest.approx(before_bytes * 0.6)


def test_multiplicative_decrease_takes_the_mean_delays_excess_once_a_round_trip():
    """A mean of 20 us against 10: 1 - 0.8 * 10/20 = 0.6 of 50,000 B; the next cut more than 10 us later."""
    flow = Flow(delay_gain=1.0, steady_increase_packets=0)
    flow.flow["cwnd_bytes"] = 50_000
    flow.acknowledge(11, 30, is_marked=1)
    assert flow.cwnd_bytes == pytest.approx(30_000)
    flow.acknowledge(21, 30, is_marked=1)
    assert flow.cwnd_bytes == pytest.approx(30_000)
    flow.acknowledge(21.001, 30, is_marked=1)
    assert flow.cwnd_bytes == pytest.approx(18_000)


def test_no_cut_takes_more_than_half_and_none_goes_below_a_packet():
    """A mean of 40 us against 10: 0.8 * 3/4 would be 60 %."""
    flow = Flow(delay_gain=1.0, quick_adapt_delay_factor=100, steady_increase_packets=0)
    flow.acknowledge(11, 50, is_marked=1)
    assert flow.cwnd_bytes == 37_500
    for round_trip in range(1, 10):
        flow.acknowledge(11 + 11 * round_trip, 50, is_marked=1)
    assert flow.cwnd_bytes == 1000


def test_the_mean_delay_forgets_queues_that_are_gone():
    """A marked 16 us counts 1/80; an unmarked one, above the target, as a quarter of 10 us."""
    flow = Flow()
    flow.acknowledge(1, 26, is_marked=1)
    assert flow.mean_delay_ps == pytest.approx(16e6 / 80)
    flow.acknowledge(2, 26)
    assert flow.mean_delay_ps == pytest.approx(16e6 / 80 * 79 / 80 + 2.5e6 / 80)


def test_quick_adapt_sets_the_window_to_what_arrived():
    """Delay of five targets. The first look, at 1 us, begins an interval of 10 + 10 us; 5 packets are below 9.375."""
    flow = in_flight(Flow(), 40)
    flow.acknowledge(1, 10)
    flow.acknowledge(20, 60, packets=4)
    before_bytes = flow.cwnd_bytes
    flow.acknowledge(20.9, 60, packets=0)
    assert flow.cwnd_bytes == before_bytes
    flow.acknowledge(21, 60)
    assert (flow.cwnd_bytes, flow.bytes_to_ignore) == (5000, 34_000)
    assert flow.growth_bytes2 == 0


def test_the_first_look_only_begins_an_interval():
    """Six targets of delay and one packet in a round trip: the window stays, and what arrives counts from then on."""
    flow = in_flight(Flow(), 40)
    flow.acknowledge(1, 70)
    assert (flow.cwnd_bytes, flow.arrived_bytes, flow.adapt_ps) == (75_000, 0, 21_000_000)
    flow.acknowledge(21, 70, packets=5)
    assert (flow.cwnd_bytes, flow.unadjusted_bytes, flow.arrived_bytes) == (5000, 0, 0)


@pytest.mark.parametrize(
    ("delay_us", "fraction", "is_adapted"), [(40, 0.1, False), (40.1, 0.1, True), (60, 0.08, False), (60, 0.081, True)]
)
def test_quick_adapt_runs_above_four_targets_and_below_a_share_of_the_window(delay_us, fraction, is_adapted):
    """Four targets are 40 us, and six packets are 0.08 of 75."""
    flow = in_flight(Flow(quick_adapt_fraction=fraction), 40)
    flow.acknowledge(1, 10)
    flow.acknowledge(21, 10 + delay_us, packets=6)
    assert (flow.cwnd_bytes == 6000) == is_adapted


def test_quick_adapt_leaves_a_flow_whose_packets_arrive():
    """Ten packets are more than an eighth of 75."""
    flow = in_flight(Flow(), 40)
    flow.acknowledge(1, 10)
    flow.acknowledge(21, 60, packets=10)
    assert flow.cwnd_bytes > 70_000


def test_after_quick_adapt_marks_of_what_was_in_flight_count_for_nothing():
    """34 packets are ignored where they are marked; the next mark cuts."""
    flow = in_flight(Flow(delay_gain=1.0, steady_increase_packets=0), 40)
    flow.acknowledge(1, 10)
    flow.acknowledge(21, 60, packets=5)
    flow.flow["last_decrease_ps"] = 0
    flow.acknowledge(40, 25, packets=33, is_marked=1)
    assert flow.cwnd_bytes == 5000
    flow.acknowledge(40.5, 25, packets=1, is_marked=1)
    assert flow.cwnd_bytes == pytest.approx(5000 * (1 - 0.8 * 5 / 15))


def test_a_gap_takes_a_packet_and_a_timeout_what_is_in_flight():
    """Of 75,000 B; never below one packet."""
    flow = in_flight(Flow(), 30)
    flow.call("on_nack", 1)
    assert (flow.cwnd_bytes, flow.in_flight_bytes, flow.ignored_bytes) == (74_000, 29_000, 1000)
    flow.call("on_timeout", 2)
    assert (flow.cwnd_bytes, flow.in_flight_bytes) == (45_000, 0)
    in_flight(flow, 60)
    flow.call("on_timeout", 3)
    assert flow.cwnd_bytes == 1000


def test_a_slow_link_keeps_a_window_of_one_packet():
    """100 ns at 40 Gb/s are 500 B."""
    assert Flow(network_rtt_ps=100_000).cwnd_bytes == 1000


def test_a_trimmed_packet_is_taken_off_the_window_and_counts_as_a_round_trip_of_delay():
    """One of 75 packets; 10 us of delay count 1/80."""
    flow = in_flight(Flow(), 30)
    flow.call("on_trim", 5_000_000, 1000, 12_000_000, 1)
    assert (flow.cwnd_bytes, flow.in_flight_bytes, flow.has_trim) == (74_000, 29_000, 1)
    assert flow.mean_delay_ps == pytest.approx(10e6 / 80)


def test_a_trimmed_packet_may_bring_a_shorter_round_trip():
    """8 us make a window of 60 packets at most."""
    flow = in_flight(Flow(), 30)
    flow.call("on_trim", 5_000_000, 1000, 8_000_000, 1)
    assert (flow.least_rtt_ps, flow.max_cwnd_bytes) == (8_000_000, 60_000)


def test_a_trimmed_packet_lets_quick_adapt_run_without_delay():
    """After the first look, at 1 us, and 20 us more 5 packets have arrived and 24 are in flight."""
    flow = in_flight(Flow(), 30)
    flow.acknowledge(1, 10)
    flow.acknowledge(20, 10, packets=5)
    flow.call("on_trim", 21_000_000, 1000, 12_000_000, 0)
    assert (flow.cwnd_bytes, flow.bytes_to_ignore, flow.has_trim) == (5000, 23_000, 0)
    flow.call("on_trim", 21_100_000, 1000, 12_000_000, 0)
    assert (flow.cwnd_bytes, flow.ignored_bytes) == (5000, 1000)


def test_at_the_target_a_window_grows_by_the_fair_step():
    """A delay of exactly the target, unmarked: no room for an increase in proportion."""
    flow = in_flight(Flow(), 30)
    flow.acknowledge(1, 10)
    before = flow.growth_bytes2
    flow.acknowledge(2, 10 + flow.target_ps / 1e6)
    fair_packets = next(one.default for one in nscc.PARAMETERS if one.name == "fair_increase_packets")
    assert flow.growth_bytes2 - before == pytest.approx(fair_packets * 1000 * flow.scaling * 1000)
    assert flow.growth_bytes2 > before
    assert flow.mean_delay_ps == pytest.approx(flow.target_ps / 80)  # a delay above the target would count as 2.5 us
