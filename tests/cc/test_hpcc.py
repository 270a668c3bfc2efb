"""HPCC step by step, with numbers worked out by hand. 100 Gb/s and 10 us: 125,000 B fill the path."""

import numpy as np
import pytest

from fabrictune.cc import hpcc
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import TELEMETRY_DTYPE, Status
from fabrictune.cc.interpreter import InterpretedLaw

RTT_PS = 10_000_000
FULL_BYTES = 125_000
STEP_BYTES = 62.5  # 50 Mb/s for 10 us
LINE_BPS = 100e9


class Sender:
    """One flow over its NIC and one switch; the port at the switch says what a test lets it say."""

    def __init__(self, **settings):
        self.law = InterpretedLaw(hpcc, {"network_rtt_ps": 0} | settings)
        self.flow = new_flow(self.law.flow_dtype, line_rate_bps=LINE_BPS, base_rtt_ps=RTT_PS)
        self.tx_bytes = 0
        assert self.law.call("on_start", self.flow, 0) == Status.OK

    def hear(self, now_ps, *, sent_bytes=0, queue_bytes=0, rtt_ps=RTT_PS, num_hops=2):
        """Acknowledge a packet that left the switch at `now_ps`, after so many bytes since the last."""
        self.tx_bytes += sent_bytes
        telemetry = np.zeros(num_hops, TELEMETRY_DTYPE)
        telemetry[0] = (now_ps, 10**12, 10**9, LINE_BPS)  # the NIC's own port, however full
        telemetry[1:] = (now_ps, self.tx_bytes, queue_bytes, LINE_BPS)
        assert self.law.call("on_ack", self.flow, now_ps, 1000, rtt_ps, 0, num_hops, 0, telemetry) == Status.OK

    @property
    def window_bytes(self):
        """What is in flight before the last packet: the engine's limit is one packet more."""
        return self.cwnd_bytes - self.mtu_bytes

    def __getattr__(self, field):
        return self.flow[field][0].item()


def test_a_flow_starts_at_line_rate_with_a_full_path():
    """And the first acknowledgement, which has nothing to be compared with, leaves it so."""
    sender = Sender()
    assert (sender.rate_bps, sender.window_bytes) == (LINE_BPS, FULL_BYTES)
    sender.hear(RTT_PS, queue_bytes=10**6)
    assert (sender.rate_bps, sender.window_bytes) == (LINE_BPS, FULL_BYTES)


def test_a_full_port_with_a_full_queue_is_twice_too_full():
    """Line rate is 1, and 125,000 B of queue another 1: W = 125,000 / (2 / 0.95) + 62.5."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    assert sender.utilization == pytest.approx(2)
    assert sender.window_bytes == pytest.approx(FULL_BYTES * 0.95 / 2 + STEP_BYTES)
    assert sender.rate_bps == pytest.approx(sender.window_bytes * 8 / 10e-6)


def test_half_a_round_trip_weighs_half():
    """The average moves from 0 half of the way to 2; 1 is still above 95 %."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(RTT_PS + RTT_PS // 2, sent_bytes=FULL_BYTES // 2, queue_bytes=FULL_BYTES)
    assert sender.utilization == pytest.approx(1)
    assert sender.window_bytes == pytest.approx(FULL_BYTES * 0.95 + STEP_BYTES)


def test_a_queue_counts_only_if_it_was_there_before():
    """The lesser of two queues is taken, so that a burst that has gone by is no congestion: U is 1 and not 2."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=0)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    assert sender.utilization == pytest.approx(1)


def test_a_port_whose_clock_stands_is_not_measured():
    """Two packets that left within a picosecond of the switch's clock; one picosecond later is a measurement."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    before = sender.utilization
    sender.hear(2 * RTT_PS, sent_bytes=1000, queue_bytes=FULL_BYTES)
    assert sender.utilization == before
    sender.hear(2 * RTT_PS + 1, sent_bytes=1000, queue_bytes=FULL_BYTES)
    assert sender.utilization > before


def test_one_congestion_is_answered_once():
    """Later acknowledgements of packets sent before the cut start from the same reference window."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    reference_bytes = sender.reference_cwnd_bytes
    for _ in range(3):
        sender.hear(3 * RTT_PS - 1, rtt_ps=RTT_PS)
        assert sender.reference_cwnd_bytes == reference_bytes
    sender.hear(3 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    assert sender.reference_cwnd_bytes < reference_bytes


def test_below_the_target_a_window_grows_by_steps_and_then_by_measure():
    """After the cut to 59,437.5 B, a port at half its rate: five steps of 62.5 B, then W_c / (0.5 / 0.95)."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    reference_bytes = sender.reference_cwnd_bytes
    for stage in range(1, 6):
        sender.hear((2 + stage) * RTT_PS, sent_bytes=FULL_BYTES // 2)
        assert sender.window_bytes == pytest.approx(reference_bytes + stage * STEP_BYTES)
    sender.hear(8 * RTT_PS, sent_bytes=FULL_BYTES // 2)
    assert sender.window_bytes == pytest.approx((reference_bytes + 5 * STEP_BYTES) / (0.5 / 0.95) + STEP_BYTES)


def test_at_the_target_a_window_follows_the_measure() -> None:
    """Utilization over target of exactly 1 ends the steps: the next stage is the first again."""
    sender = Sender(target_utilization_fraction=0.5)
    sender.hear(RTT_PS)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES // 2)
    assert (sender.utilization, sender.stage) == (0.5, 0)


def test_a_path_of_another_length_is_not_compared():
    """After a reroute the ports are others; the next acknowledgement measures again."""
    sender = Sender()
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES, num_hops=3)
    assert (sender.window_bytes, sender.utilization) == (FULL_BYTES, 0)
    sender.hear(3 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES, num_hops=3)
    assert sender.utilization == pytest.approx(2)


def test_a_short_path_is_measured_over_the_network_s_round_trip():
    """Of 40 us, 10 us are a quarter: U moves so far to 1 + 1/4, and the window holds 40 us at line rate."""
    sender = Sender(network_rtt_ps=4 * RTT_PS)
    assert sender.window_bytes == 4 * FULL_BYTES
    sender.hear(RTT_PS, queue_bytes=FULL_BYTES)
    sender.hear(2 * RTT_PS, sent_bytes=FULL_BYTES, queue_bytes=FULL_BYTES)
    assert sender.utilization == pytest.approx(1.25 / 4)


def test_windows_keep_to_their_bounds():
    """An idle port never opens more than the path, and 10 MB of queue leave the least rate."""
    sender = Sender(max_stages=0)
    sender.hear(RTT_PS)
    sender.hear(2 * RTT_PS, sent_bytes=1)
    assert (sender.window_bytes, sender.rate_bps) == (FULL_BYTES, LINE_BPS)
    for round_trip in range(3, 9):
        sender.hear(round_trip * RTT_PS, queue_bytes=10**9)
    assert sender.rate_bps == pytest.approx(100e6)
