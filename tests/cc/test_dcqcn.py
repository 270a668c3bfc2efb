"""DCQCN step by step, with numbers worked out by hand. Line rate 40 Gb/s, the paper's parameters."""

from functools import partial
from itertools import pairwise

import pytest

from fabrictune.cc import dcqcn
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import NEVER, UNLIMITED_CWND_BYTES
from fabrictune.cc.interpreter import InterpretedLaw
from tests.cc import sender

GAIN = 1 / 256
ALPHA_TIMER_PS = RATE_TIMER_PS = 55_000_000
GBPS = 1e9
Sender = partial(sender.Sender, dcqcn)


def test_a_flow_starts_at_line_rate_and_waits_for_nothing():
    """There is no slow start, no window and no timer before the first CNP."""
    sender = Sender()
    assert (sender.rate_bps, sender.cwnd_bytes, sender.alpha) == (40 * GBPS, UNLIMITED_CWND_BYTES, 1.0)
    assert sender.deadline_ps == [NEVER] * 4


def test_the_first_cnp_halves_the_rate_however_late_it_comes():
    """Alpha starts at 1 and decays only between CNPs: 40 * (1 - 1/2) = 20."""
    sender = Sender()
    sender.call("on_cnp", 10**12)
    assert sender.rate_bps == 20 * GBPS
    assert sender.target_rate_bps == 40 * GBPS
    assert sender.alpha == 1.0  # (1 - g) * 1 + g
    assert sender.deadline_ps == [10**12 + RATE_TIMER_PS, NEVER, NEVER, NEVER]


def test_alpha_decays_by_whole_alpha_timers_before_a_cut():
    """165 us are three timers of 55 us: alpha = (255/256)**3, and the rate falls by half of that."""
    sender = Sender()
    sender.call("on_cnp", 0)
    sender.call("on_cnp", 3 * ALPHA_TIMER_PS + ALPHA_TIMER_PS - 1)
    alpha = (1 - GAIN) ** 3
    assert sender.rate_bps == pytest.approx(20 * GBPS * (1 - alpha / 2), rel=1e-14)
    assert sender.alpha == pytest.approx((1 - GAIN) * alpha + GAIN, rel=1e-14)


def test_a_cnp_within_the_decrease_interval_changes_nothing():
    """49.999999 us after the last cut is too soon, 50 us is not."""
    sender = Sender()
    sender.call("on_cnp", 0)
    before = sender.flow.tobytes()
    sender.call("on_cnp", 49_999_999)
    assert sender.flow.tobytes() == before
    sender.call("on_cnp", 50_000_000)
    assert sender.num_decreases == 2


def test_fast_recovery_halves_the_distance_five_times_and_then_adds():
    """From 10 towards 20 Gb/s: 15, 17.5, 18.75, 19.375, 19.6875; then the target rises by 40 Mb/s first."""
    sender = Sender(decrease_interval_ps=0)
    sender.call("on_cnp", 0)
    sender.call("on_cnp", 0)
    assert (sender.rate_bps, sender.target_rate_bps) == (10 * GBPS, 20 * GBPS)
    rates = []
    for expiry in range(1, 8):
        sender.call("on_timer", expiry * RATE_TIMER_PS, 0)
        rates.append(sender.rate_bps / GBPS)
    assert rates[:5] == [15, 17.5, 18.75, 19.375, 19.6875]
    assert rates[5] == pytest.approx((20.04 + 19.6875) / 2)
    assert rates[6] == pytest.approx((20.08 + rates[5]) / 2)
    assert sender.deadline_ps[0] == 8 * RATE_TIMER_PS


def test_the_byte_counter_counts_as_the_timer_does():
    """Every 10 MB sent is one expiry; what exceeds it counts towards the next."""
    sender = Sender()
    sender.call("on_cnp", 0)
    sender.call("on_send", 1, 9_999_999)
    assert (sender.rate_bps, sender.byte_stage) == (20 * GBPS, 0)
    sender.call("on_send", 2, 6)
    assert (sender.rate_bps, sender.byte_stage, sender.counted_bytes) == (30 * GBPS, 1, 5)


def test_hyper_increase_needs_both_counters_past_fast_recovery():
    """With F 1, two expiries of each put the next step at 200 Mb/s; one short of it, 40 Mb/s."""
    sender = Sender(decrease_interval_ps=0, fast_recovery_stages=1, byte_counter_bytes=1000)
    for _ in range(3):
        sender.call("on_cnp", 0)
    targets = [sender.target_rate_bps]
    for event, *arguments in 3 * [("on_timer", 0), ("on_send", 1000)]:
        sender.call(event, 1, *arguments)
        targets.append(sender.target_rate_bps)
    steps = [round((after - before) / 1e6) for before, after in pairwise(targets)]
    assert steps == [0, 40, 40, 40, 200, 200]


def test_without_a_byte_counter_only_the_timer_raises():
    """0 bytes stand for no counter, as in the public ns-3 models."""
    sender = Sender(byte_counter_bytes=0)
    sender.call("on_cnp", 0)
    sender.call("on_send", 1, 10**9)
    assert (sender.rate_bps, sender.byte_stage) == (20 * GBPS, 0)


def test_the_timer_rests_once_line_rate_is_reached():
    """20 Gb/s short of 40: after 35 halvings less than 1 bit a second is missing, and the rate is line rate."""
    sender = Sender(byte_counter_bytes=0)
    sender.call("on_cnp", 0)
    expiries = 0
    while sender.rate_bps < 40 * GBPS:
        expiries += 1
        sender.flow["deadline_ps"][0, 0] = NEVER
        sender.call("on_timer", expiries * RATE_TIMER_PS, 0)
    assert expiries == 35
    assert sender.deadline_ps[0] == NEVER


def test_no_cut_goes_below_the_minimum_rate():
    """Ten halvings of 40 Gb/s would be 39 Mb/s."""
    sender = Sender(decrease_interval_ps=0)
    for _ in range(10):
        sender.call("on_cnp", 0)
    assert sender.rate_bps == 100e6


def test_a_nic_slower_than_the_minimum_rate_sends_at_its_own():
    """No rate exceeds the line."""
    law = InterpretedLaw(dcqcn)
    flow = new_flow(law.flow_dtype, line_rate_bps=10e6)
    law.call("on_start", flow, 0)
    law.call("on_cnp", flow, 0)
    assert flow["rate_bps"][0] == 10e6


def test_without_clamping_a_second_cut_keeps_the_target():
    """NICs lower the target only at a cut that follows an increase."""
    sender = Sender(decrease_interval_ps=0, clamp_target=0)
    sender.call("on_cnp", 0)
    assert sender.target_rate_bps == 40 * GBPS
    sender.call("on_cnp", 0)
    assert sender.target_rate_bps == 40 * GBPS
    sender.call("on_timer", 1, 0)
    assert sender.rate_bps == 25 * GBPS
    sender.call("on_cnp", 2)
    assert sender.target_rate_bps == 25 * GBPS


def test_without_clamping_an_increase_by_the_byte_counter_counts_too():
    """20 towards 40 Gb/s is 30, which the cut that follows takes for its target; counters begin anew with a cut."""
    sender = Sender(decrease_interval_ps=0, clamp_target=0, byte_counter_bytes=1000)
    sender.call("on_cnp", 0)
    sender.call("on_send", 1, 1999)
    assert (sender.rate_bps, sender.byte_stage, sender.counted_bytes) == (30 * GBPS, 1, 999)
    sender.call("on_cnp", 2)
    assert sender.target_rate_bps == 30 * GBPS
    assert (sender.timer_stage, sender.byte_stage, sender.counted_bytes) == (0, 0, 0)


def test_at_line_rate_no_byte_is_counted():
    """There is nothing to raise."""
    sender = Sender()
    sender.call("on_send", 1, 10**6)
    assert sender.counted_bytes == 0


@pytest.mark.parametrize(("missing_bps", "rate_bps"), [(2, 40e9 - 1), (1.9, 40e9)])
def test_less_than_a_bit_a_second_short_of_line_rate_is_line_rate(missing_bps, rate_bps):
    """Half of the distance is left."""
    sender = Sender()
    sender.call("on_cnp", 0)
    sender.flow["rate_bps"] = 40e9 - missing_bps
    sender.call("on_timer", 1, 0)
    assert sender.rate_bps == rate_bps


def test_a_windowed_flow_keeps_one_round_trip_in_flight():
    """40 Gb/s over 10 us is 50,000 B; half the rate, half the window."""
    sender = Sender(is_windowed=1)
    assert sender.cwnd_bytes == 50_000
    sender.call("on_cnp", 0)
    assert sender.cwnd_bytes == 25_000
