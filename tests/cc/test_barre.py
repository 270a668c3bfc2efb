"""Barre step by step, with numbers worked out by hand. Line rate 100 Gb/s, base round trip 10 us."""

from itertools import pairwise

import pytest

from fabrictune.cc import barre
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import NEVER, Status
from fabrictune.cc.interpreter import InterpretedLaw

RTT_PS = 10_000_000
MBPS = 1e6
LINE_BPS = 100e9


class Sender:
    """One flow under the law."""

    def __init__(self, *, rate_bps=LINE_BPS, **settings):
        self.law = InterpretedLaw(barre, settings)
        self.flow = new_flow(self.law.flow_dtype, line_rate_bps=LINE_BPS, base_rtt_ps=RTT_PS)
        self.call("on_start", 0)
        self.flow["rate_bps"] = rate_bps

    def call(self, event, *arguments):
        assert self.law.call(event, self.flow, *arguments) == Status.OK

    def hear(self, now_ps, rtt_ps, endpoint_delay_ps=0):
        self.call("on_ack", now_ps, 1000, rtt_ps, endpoint_delay_ps, 2, 0, None)

    def end_round(self, now_ps):
        """Open both locks."""
        self.call("on_send", now_ps, 8001)
        self.flow["deadline_ps"] = NEVER
        self.call("on_timer", now_ps, 0)

    def __getattr__(self, field):
        return self.flow[field][0].item() if self.flow[field].ndim == 1 else self.flow[field][0].tolist()


def test_at_line_rate_there_is_nothing_to_add():
    """No timer runs before the first CNP."""
    sender = Sender()
    assert (sender.rate_bps, sender.deadline_ps) == (LINE_BPS, [NEVER] * 4)


def test_every_cnp_takes_three_percent():
    """Two of them leave 0.97 * 0.97, and a round begins with each."""
    sender = Sender()
    sender.call("on_cnp", 0)
    sender.call("on_cnp", 1_000_000)
    assert sender.rate_bps == pytest.approx(LINE_BPS * 0.97**2)
    assert sender.deadline_ps[0] == 1_000_000 + RTT_PS


@pytest.mark.parametrize("is_time_first", [True, False])
def test_a_round_ends_when_both_locks_are_open(is_time_first):
    """A round trip alone is not enough, nor are 8,001 B; whichever comes last adds 10 Mb/s."""
    sender = Sender(rate_bps=50e9)
    sender.call("on_cnp", 0)
    before_bps = sender.rate_bps
    opening = [("on_timer", RTT_PS, 0), ("on_send", RTT_PS, 8001)]
    first, last = opening if is_time_first else reversed(opening)
    sender.call(*first)
    assert sender.rate_bps == before_bps
    sender.call(*last)
    assert sender.rate_bps - before_bps == 10 * MBPS
    assert sender.deadline_ps[0] == 2 * RTT_PS


def test_both_locks_close_again_with_every_round():
    """8,000 B are not more than 8,000, and what opened the last round opens no other."""
    sender = Sender(rate_bps=50e9)
    sender.end_round(RTT_PS)
    after_one_bps = sender.rate_bps
    sender.call("on_send", RTT_PS, 8001)
    assert sender.rate_bps == after_one_bps
    sender.call("on_cnp", RTT_PS)
    before_bps = sender.rate_bps
    sender.call("on_timer", 2 * RTT_PS, 0)
    sender.call("on_send", 2 * RTT_PS, 8000)
    assert sender.rate_bps == before_bps
    sender.call("on_send", 2 * RTT_PS, 1)
    assert sender.rate_bps == before_bps + 10 * MBPS


def test_a_round_that_ends_at_line_rate_is_the_last():
    """The step goes no further, and no timer runs; a flow that is held back has a quarter of the line for its own."""
    sender = Sender(rate_bps=LINE_BPS - 1)
    sender.end_round(RTT_PS)
    assert (sender.rate_bps, sender.deadline_ps) == (LINE_BPS, [NEVER] * 4)
    sender.hear(RTT_PS, 5 * RTT_PS)
    sender.end_round(2 * RTT_PS)
    assert (sender.rate_bps, sender.deadline_ps) == (LINE_BPS / 4, [NEVER] * 4)


def test_after_five_clean_rounds_steps_are_a_thousandth_of_the_line():
    """10 Mb/s five times, then 100 Mb/s, until a CNP."""
    sender = Sender(rate_bps=50e9)
    rates = [sender.rate_bps]
    for number in range(1, 8):
        sender.end_round(number * RTT_PS)
        rates.append(sender.rate_bps)
    steps = [round((after - before) / MBPS) for before, after in pairwise(rates)]
    assert steps == [10, 10, 10, 10, 10, 100, 100]
    sender.call("on_cnp", 8 * RTT_PS)
    rates = [sender.rate_bps]
    for number in range(9, 15):
        sender.end_round(number * RTT_PS)
        rates.append(sender.rate_bps)
    assert [round((after - before) / MBPS) for before, after in pairwise(rates)] == [10, 10, 10, 10, 10, 100]


def test_a_step_may_grow_with_the_round_trip():
    """10 Mb/s for each 2 us of the 10: flows of long paths add as fast as those of short ones."""
    sender = Sender(rate_bps=50e9, step_rtt_ps=2_000_000)
    sender.end_round(RTT_PS)
    assert sender.rate_bps - 50e9 == 50 * MBPS


def test_a_fourfold_round_trip_leaves_a_quarter_until_the_next_cnp():
    """40 us is not more than fourfold, one picosecond more is; the time in the host does not count."""
    sender = Sender(rate_bps=80e9)
    sender.hear(0, 4 * RTT_PS)
    sender.hear(0, 6 * RTT_PS, endpoint_delay_ps=2 * RTT_PS)
    assert sender.rate_bps == 80e9
    for _ in range(3):
        sender.hear(0, 4 * RTT_PS + 1)
        assert sender.rate_bps == 20e9
    sender.call("on_cnp", 0)
    assert sender.rate_bps == pytest.approx(80e9 * 0.97)


def test_a_round_trip_that_is_short_again_gives_the_rate_back():
    """With what was added meanwhile."""
    sender = Sender(rate_bps=80e9)
    sender.hear(0, 5 * RTT_PS)
    sender.end_round(RTT_PS)
    sender.hear(RTT_PS, RTT_PS)
    assert sender.rate_bps == pytest.approx(80e9 + 10 * MBPS)


def test_no_cut_goes_below_the_least_rate():
    """0.97**400 of 100 Gb/s would be half a Mb/s."""
    sender = Sender()
    for _ in range(400):
        sender.call("on_cnp", 0)
    assert sender.rate_bps == 10 * MBPS
