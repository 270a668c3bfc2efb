"""The firmware's DCQCN step by step, with numbers worked out by hand. Line rate 40 Gb/s, the firmware's defaults."""

import pytest

from fabrictune.cc import dcqcn_firmware
from fabrictune.cc.interface import NEVER
from tests.cc.sender import Sender

GBPS = 1e9
SLOT_PS = 1_000_000
PERIOD_PS = 4_000_000
RATE_TIMER, CUT_TIMER = 0, 1
KEPT = 1019 / 1024
FIRST_ALPHA = 1023 / 1024


def start(**settings):
    return Sender(dcqcn_firmware, **settings)


def test_a_flow_starts_at_line_rate_and_waits_for_nothing():
    """As in the paper's form."""
    sender = start()
    assert (sender.rate_bps, sender.deadline_ps) == (40 * GBPS, [NEVER] * 4)


def test_a_cnp_cuts_at_the_end_of_its_monitor_period():
    """Nothing happens for 4 us; by then alpha has ended four slots, the first with a CNP."""
    sender = start()
    sender.call("on_cnp", 10**9)
    sender.advance(10**9 + PERIOD_PS - 1)
    assert sender.rate_bps == 40 * GBPS
    sender.advance(10**9 + PERIOD_PS)
    alpha = (FIRST_ALPHA * KEPT + (1 - KEPT)) * KEPT**3
    assert sender.rate_bps == pytest.approx(40 * GBPS * (1 - alpha / 2), rel=1e-14)
    assert sender.target_rate_bps == 40 * GBPS


def test_monitor_periods_follow_one_another_from_the_first_cnp():
    """A CNP 9 us after the first is in the third period, which ends 12 us after it."""
    sender = start()
    sender.call("on_cnp", 0)
    sender.advance(9_000_000)
    sender.call("on_cnp", 9_000_000)
    assert sender.deadline_ps[CUT_TIMER] == 3 * PERIOD_PS


def test_several_cnps_in_a_period_cut_once():
    """But each slot with a CNP raises alpha: 0, 1 and 2 us are three slots, and the fourth has none."""
    sender = start(initial_alpha_value=512)
    for now_ps in (0, 500_000, SLOT_PS, 2 * SLOT_PS):
        sender.call("on_cnp", now_ps)
    sender.advance(PERIOD_PS)
    alpha = 0.5
    for has_cnp in (1, 1, 1, 0):
        alpha = alpha * KEPT + (1 - KEPT) * has_cnp
    assert sender.alpha == pytest.approx(alpha, rel=1e-14)
    assert sender.rate_bps == pytest.approx(40 * GBPS * (1 - alpha / 2), rel=1e-14)


def test_a_cnp_as_its_period_ends_belongs_to_it():
    """Packets come before timers: the cut due at this instant is not put off."""
    sender = start()
    sender.call("on_cnp", 0)
    sender.call("on_cnp", PERIOD_PS)
    assert sender.deadline_ps[CUT_TIMER] == PERIOD_PS


def test_alpha_halves_in_142_slots():
    """ln 2 / -ln(1019/1024) = 141.6: 0.14 ms, where the paper's alpha takes 9.7 ms."""
    sender = start()
    sender.call("on_cnp", 0)
    sender.call("on_cnp", 142 * SLOT_PS)
    assert sender.alpha == pytest.approx(0.5, rel=0.005)


def test_a_cut_leaves_what_it_must():
    """Alpha 0.99 would take half of the rate; 80 % have to stay."""
    sender = start(rpg_min_dec_fac_fraction=0.8)
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    assert sender.rate_bps == 32 * GBPS


def test_gd_10_cuts_by_all_of_alpha():
    """Shifted by none: half of the rate stays of what alpha 1/2 would leave three quarters of."""
    sender = start(rpg_gd=10, initial_alpha_value=512, dce_tcp_rtt_ps=10**9)
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    assert sender.rate_bps == 20 * GBPS


def test_the_first_cnp_may_set_the_rate():
    """Rate and target both go to 10 Gb/s, at once, and only the first time."""
    sender = start(rate_to_set_on_first_cnp_bps=10 * GBPS)
    sender.call("on_cnp", 0)
    assert (sender.rate_bps, sender.target_rate_bps) == (10 * GBPS, 10 * GBPS)
    sender.advance(PERIOD_PS)
    rate_bps = sender.rate_bps
    sender.call("on_cnp", PERIOD_PS + 1)
    assert sender.rate_bps == rate_bps < 10 * GBPS


def test_the_timer_recovers_then_adds_then_hurries():
    """Without a byte counter: half-way once, then 5 Mb/s on the target once, then 50 Mb/s each time."""
    sender = start(rpg_byte_reset_bytes=0, rpg_time_reset_ps=10_000_000)
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    sender.flow["target_rate_bps"] = 30 * GBPS
    targets = []
    for expiry in range(1, 5):
        sender.advance(PERIOD_PS + expiry * 10_000_000)
        targets.append(sender.target_rate_bps - 30 * GBPS)
    assert targets == [0, 5e6, 55e6, 105e6]


def test_hyper_increase_needs_both_counters_where_there_are_two():
    """Ten expiries of the timer and none of the byte counter: 5 Mb/s nine times."""
    sender = start(rpg_time_reset_ps=10_000_000)
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    sender.flow["target_rate_bps"] = 30 * GBPS
    sender.advance(PERIOD_PS + 10 * 10_000_000)
    assert sender.target_rate_bps - 30 * GBPS == 9 * 5e6


def test_the_byte_counter_is_2_mb():
    """32767 times 64 B; what exceeds it counts towards the next."""
    sender = start()
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    sender.call("on_send", PERIOD_PS, 2_097_087)
    assert sender.byte_stage == 0
    sender.call("on_send", PERIOD_PS, 3)
    assert (sender.byte_stage, sender.counted_bytes) == (1, 2)


@pytest.mark.parametrize(
    ("settings", "is_lowered"),
    [
        ({}, True),
        ({"clamp_tgt_rate_after_time_inc": 0}, False),
        ({"clamp_tgt_rate_after_time_inc": 0, "clamp_tgt_rate": 1}, True),
    ],
)
def test_a_cut_lowers_the_target_as_the_clamps_say(settings, is_lowered):
    """Here after an increase by the timer; after none, only `clamp_tgt_rate` lowers it."""
    sender = start(rpg_time_reset_ps=10_000_000, **settings)
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS + 10_000_000)
    rate_bps, target_bps = sender.rate_bps, sender.target_rate_bps
    sender.call("on_cnp", PERIOD_PS + 10_000_000)
    sender.advance(4 * PERIOD_PS)
    assert sender.target_rate_bps == (rate_bps if is_lowered else target_bps)


def test_an_increase_by_the_byte_counter_lowers_the_target_at_the_next_cut():
    """Whatever the clamps say; and counters begin anew with a cut."""
    sender = start(rpg_byte_reset_bytes=1000, clamp_tgt_rate_after_time_inc=0)
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    sender.call("on_send", PERIOD_PS, 1999)
    rate_bps = sender.rate_bps
    assert (sender.byte_stage, sender.counted_bytes) == (1, 999)
    sender.call("on_cnp", PERIOD_PS + 1)
    sender.advance(2 * PERIOD_PS)
    assert sender.target_rate_bps == rate_bps
    assert (sender.timer_stage, sender.byte_stage, sender.counted_bytes) == (0, 0, 0)


def test_at_the_largest_rate_no_byte_is_counted():
    """There is nothing to raise."""
    sender = start()
    sender.call("on_send", 1, 10**6)
    assert sender.counted_bytes == 0


@pytest.mark.parametrize(("missing_bps", "rate_bps"), [(2, 40e9 - 1), (1.9, 40e9)])
def test_less_than_a_bit_a_second_short_of_line_rate_is_line_rate(missing_bps, rate_bps):
    """Half of the distance is left."""
    sender = start()
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    sender.flow["rate_bps"] = 40e9 - missing_bps
    sender.call("on_timer", PERIOD_PS + 1, RATE_TIMER)
    assert sender.rate_bps == rate_bps


def test_rates_keep_to_their_bounds():
    """No increase above `rpg_max_rate`, and no cut below `rpg_min_rate`."""
    sender = start(rpg_max_rate_bps=20 * GBPS, rpg_min_rate_bps=15 * GBPS)
    assert sender.rate_bps == 20 * GBPS
    sender.call("on_cnp", 0)
    sender.advance(PERIOD_PS)
    assert sender.rate_bps == 15 * GBPS
    sender.advance(10**12)
    assert (sender.rate_bps, sender.deadline_ps) == (20 * GBPS, [NEVER] * 4)
