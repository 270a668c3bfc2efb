"""DCTCP step by step, with numbers worked out by hand. 40 Gb/s, 10 us unloaded: 50 packets of 1,000 B."""

from functools import partial

import pytest

from fabrictune.cc import dctcp
from tests.cc.sender import Sender

Flow = partial(Sender, dctcp)
GAIN = 1 / 16


def test_a_flow_starts_with_what_the_unloaded_path_holds():
    """50 packets at line rate, and alpha 1 (RFC 8257)."""
    flow = Flow()
    assert (flow.cwnd_bytes, flow.rate_bps, flow.alpha) == (50_000, 40e9, 1)


def test_an_unmarked_window_adds_a_packet():
    """50 packets at once: 1,000 B * 50,000 / 50,000."""
    flow = Flow()
    flow.acknowledge(10, 10, packets=50)
    assert flow.cwnd_bytes == 51_000


def test_the_first_mark_halves_the_window():
    """Alpha is 1, and stays so: all bytes of the round trip were marked."""
    flow = Flow()
    flow.acknowledge(10, 10, is_marked=1)
    assert flow.cwnd_bytes == 25_000
    assert flow.alpha == 1


def test_a_window_is_cut_once_for_what_was_sent_before_the_cut():
    """Cut at 10 us; an acknowledgement at 15 is for a packet of 5 us, one at 20 for a packet of 10."""
    flow = Flow()
    for now_us, cwnd_bytes in ((10, 25_000), (15, 25_000), (20, 12_500)):
        flow.acknowledge(now_us, 10, is_marked=1)
        assert flow.cwnd_bytes == cwnd_bytes


def test_alpha_follows_the_share_of_marked_bytes():
    """The first round ends at once, unmarked: 15/16. Of the next four packets one is marked: 15/16 of that + 1/64."""
    flow = Flow()
    flow.acknowledge(10, 10)
    assert flow.alpha == 1 - GAIN
    for now_us, is_marked in ((12, 0), (14, 1), (16, 0), (20, 0)):
        flow.acknowledge(now_us, 10, is_marked=is_marked)
    assert flow.alpha == pytest.approx((1 - GAIN) ** 2 + GAIN / 4)


@pytest.mark.parametrize(("num_bytes", "alpha"), [(1, 1.0), (0, 1 - GAIN)])
def test_a_round_trip_may_bring_a_byte_or_none(num_bytes, alpha):
    """One byte of one marked is all of them; nothing of nothing is none."""
    flow = Flow()
    flow.acknowledge(10, 10, packets=num_bytes / 1000, is_marked=1)
    assert flow.alpha == alpha


def test_a_gap_halves_the_window_once_a_round_trip():
    """As TCP does."""
    flow = Flow()
    for now_us, cwnd_bytes in ((10, 25_000), (15, 25_000), (20, 12_500)):
        flow.call("on_nack", now_us * 10**6)
        assert flow.cwnd_bytes == cwnd_bytes


def test_silence_starts_over_from_the_smallest_window():
    """Two packets."""
    flow = Flow()
    flow.call("on_timeout", 10**9)
    assert flow.cwnd_bytes == 2000


def test_no_window_exceeds_the_largest():
    """51 packets, after many round trips without a mark."""
    flow = Flow(max_cwnd_packets=51)
    for now_us in range(10, 100, 10):
        flow.acknowledge(now_us, 10, packets=50)
    assert flow.cwnd_bytes == 51_000


def test_the_smallest_window_may_be_less_than_a_byte():
    """A thousandth of a packet of 100 B."""
    flow = Flow(min_cwnd_packets=0.001)
    flow.flow["mtu_bytes"] = 100
    flow.call("on_timeout", 10**9)
    assert flow.cwnd_bytes == pytest.approx(0.1)
