"""DCQCN as ConnectX firmware runs it, with the firmware's names and defaults.

It shares equations with the paper's form (`cc/dcqcn.py`) and is another controller. Alpha counts slots of `dce_tcp_rtt`
with and without CNPs, where the paper counts CNPs and long silences: the same gain halves alpha in 0.14 ms here and in
9.7 ms there. A CNP does not cut at once: the cut comes at the end of the monitor period it fell in. Increases come
every 300 us and not every 55 us, in small steps.

Neither slots nor monitor periods have timers. Slots are counted from the first CNP when alpha is next needed; of the
monitor periods, which follow one another from then on, only the end of one with a CNP is waited for.

Source: NVIDIA, "DCQCN CC Parameters" (DOCA documentation) and "DCQCN Parameters" (community, DOC-2790) for names,
defaults and what each does; the order of events at one instant, alpha before cut, is that of the public ns-3 models
(Li et al., HPCC, SIGCOMM 2019, and its successors), which also have hyper increase by the timer where there is no byte
counter. Their `dcqcn_paper` is this law with slots and monitor periods of 50 us.
Left out: alpha's ten bits (it is a fraction here); the release of a flow's state once it is back at line rate.
"""

from typing import Any

from fabrictune.cc.arithmetic import integer_power
from fabrictune.cc.interface import NEVER, Parameter, Status

RATE_TIMER = 0
CUT_TIMER = 1
ONE = 1024.0  # of the firmware's fractions of ten bits

VARIANT = "that of ConnectX firmware; the paper's of 2015 is dcqcn"

PARAMETERS = (
    Parameter(
        name="dce_tcp_g",
        default=1019,
        low=0,
        high=1023,
        meaning="what a slot keeps of alpha, of 1024; the paper's 1 - g",
        dtype="i8",
    ),
    Parameter(
        name="dce_tcp_rtt_ps",
        default=1_000_000,
        low=1_000_000,
        high=131_071_000_000,
        meaning="length of a slot: alpha moves towards 1 in one with a CNP and towards 0 in one without",
        dtype="i8",
    ),
    Parameter(
        name="initial_alpha_value",
        default=1023,
        low=1,
        high=1023,
        meaning="alpha at a flow's first CNP, of 1024",
        dtype="i8",
    ),
    Parameter(
        name="rate_to_set_on_first_cnp_bps",
        default=0,
        low=0,
        high=1e12,
        meaning="rate and target at a flow's first CNP; 0 leaves them",
    ),
    Parameter(
        name="rate_reduce_monitor_period_ps",
        default=4_000_000,
        low=1_000_000,
        high=10**12,
        meaning="at the end of each such period with a CNP the rate is cut, once",
        dtype="i8",
    ),
    Parameter(
        name="rpg_gd",
        default=11,
        low=10,
        high=11,
        meaning="a cut takes alpha / 2^(gd - 10) of the rate",
        dtype="i8",
    ),
    Parameter(
        name="rpg_min_dec_fac_fraction",
        default=0.5,
        low=0.0,
        high=1.0,
        meaning="what one cut leaves of the rate at least",
    ),
    Parameter(name="rpg_min_rate_bps", default=1e6, low=1e6, high=1e12, meaning="no cut goes below this rate"),
    Parameter(
        name="rpg_max_rate_bps",
        default=0,
        low=0,
        high=1e12,
        meaning="no increase goes above this rate; 0 for line rate",
    ),
    Parameter(
        name="clamp_tgt_rate",
        default=0,
        low=0,
        high=1,
        meaning="1: every cut lowers the target rate; 0: only one that follows an increase",
        dtype="i8",
    ),
    Parameter(
        name="clamp_tgt_rate_after_time_inc",
        default=1,
        low=0,
        high=1,
        meaning="0: of increases, only those by the byte counter let a cut lower the target rate",
        dtype="i8",
    ),
    Parameter(
        name="rpg_time_reset_ps",
        default=300_000_000,
        low=1_000_000,
        high=10**12,
        meaning="time between two increases by the timer",
        dtype="i8",
    ),
    Parameter(
        name="rpg_byte_reset_bytes",
        default=32767 * 64,
        low=0,
        high=32767 * 64,
        meaning="payload between two increases by the byte counter; 0 for none, as in the public ns-3 models",
        dtype="i8",
    ),
    Parameter(
        name="rpg_threshold",
        default=1,
        low=1,
        high=31,
        meaning="expiries of a counter before the target rate rises",
        dtype="i8",
    ),
    Parameter(
        name="rpg_ai_rate_bps",
        default=5e6,
        low=1e6,
        high=1e12,
        meaning="step of the target rate once a counter has reached the threshold",
    ),
    Parameter(
        name="rpg_hai_rate_bps",
        default=50e6,
        low=1e6,
        high=1e12,
        meaning="step of the target rate once all counters have passed the threshold",
    ),
)

STATE = (
    ("target_rate_bps", "f8"),
    ("alpha", "f8"),  # as of slot_ps
    ("slot_ps", "i8"),  # when the present slot began
    ("has_cnp_in_slot", "i8"),
    ("first_cnp_ps", "i8"),  # when slots and monitor periods began; NEVER before
    ("counted_bytes", "i8"),
    ("timer_stage", "i8"),  # expiries since the last cut
    ("byte_stage", "i8"),
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start as fast as is allowed."""
    flow.rate_bps = _max_rate(params, flow)
    flow.target_rate_bps = flow.rate_bps
    flow.first_cnp_ps = NEVER
    return Status.OK


def on_cnp(params: Any, flow: Any, now_ps: int) -> int:
    """Note the CNP, and wait for the end of the monitor period."""
    if flow.first_cnp_ps == NEVER:
        _begin(params, flow, now_ps)
    _end_slots(params, flow, now_ps)
    flow.has_cnp_in_slot = 1
    if flow.deadline_ps[CUT_TIMER] == NEVER:
        num_periods = (now_ps - flow.first_cnp_ps) // params.rate_reduce_monitor_period_ps + 1
        flow.deadline_ps[CUT_TIMER] = flow.first_cnp_ps + num_periods * params.rate_reduce_monitor_period_ps
    return Status.OK


def on_timer(params: Any, flow: Any, now_ps: int, timer: int) -> int:
    """Cut the rate, or raise it; the rate timer rests once there is nothing left to raise."""
    if timer == CUT_TIMER:
        _end_slots(params, flow, now_ps)
        _cut(params, flow)
        flow.deadline_ps[RATE_TIMER] = now_ps + params.rpg_time_reset_ps
        return Status.OK
    _increase(params, flow)
    flow.timer_stage += 1
    if flow.rate_bps < _max_rate(params, flow):
        flow.deadline_ps[RATE_TIMER] = now_ps + params.rpg_time_reset_ps
    return Status.OK


def on_send(params: Any, flow: Any, now_ps: int, sent_bytes: int) -> int:
    """Count bytes; when the byte counter expires, raise the rate, if there is anything left to raise."""
    if params.rpg_byte_reset_bytes == 0 or flow.rate_bps >= _max_rate(params, flow):
        return Status.OK
    flow.counted_bytes += sent_bytes
    if flow.counted_bytes >= params.rpg_byte_reset_bytes:
        flow.counted_bytes -= params.rpg_byte_reset_bytes
        _increase(params, flow)
        flow.byte_stage += 1
    return Status.OK


def _begin(params: Any, flow: Any, now_ps: int) -> None:
    """Meet a flow's first CNP."""
    flow.first_cnp_ps = now_ps
    flow.slot_ps = now_ps
    flow.alpha = params.initial_alpha_value / ONE
    if params.rate_to_set_on_first_cnp_bps > 0:
        _set_rate(params, flow, params.rate_to_set_on_first_cnp_bps)
        flow.target_rate_bps = flow.rate_bps


def _end_slots(params: Any, flow: Any, now_ps: int) -> None:
    """Bring alpha up to date: one slot that may have had a CNP, and as many as have passed without."""
    num_slots = (now_ps - flow.slot_ps) // params.dce_tcp_rtt_ps
    if num_slots > 0:
        remaining_share = params.dce_tcp_g / ONE
        flow.alpha = flow.alpha * remaining_share + (1 - remaining_share) * flow.has_cnp_in_slot
        flow.alpha = flow.alpha * integer_power(remaining_share, num_slots - 1)
        flow.slot_ps += num_slots * params.dce_tcp_rtt_ps
        flow.has_cnp_in_slot = 0


def _cut(params: Any, flow: Any) -> None:
    """Take a share of the rate that grows with alpha, and begin to count increases anew."""
    has_timer_increase = flow.timer_stage > 0 and params.clamp_tgt_rate_after_time_inc == 1
    if params.clamp_tgt_rate == 1 or has_timer_increase or flow.byte_stage > 0:
        flow.target_rate_bps = flow.rate_bps
    cut_fraction = flow.alpha / 2 if params.rpg_gd == 11 else flow.alpha
    _set_rate(params, flow, flow.rate_bps * max(1 - cut_fraction, params.rpg_min_dec_fac_fraction))
    flow.counted_bytes = 0
    flow.timer_stage = 0
    flow.byte_stage = 0


def _increase(params: Any, flow: Any) -> None:
    """Raise the target by the stage the counters have reached, and the rate half-way to it."""
    has_byte_counter = params.rpg_byte_reset_bytes > 0
    last_stage = min(flow.timer_stage, flow.byte_stage) if has_byte_counter else flow.timer_stage
    if last_stage > params.rpg_threshold:
        flow.target_rate_bps += params.rpg_hai_rate_bps
    elif max(flow.timer_stage, flow.byte_stage) >= params.rpg_threshold:
        flow.target_rate_bps += params.rpg_ai_rate_bps
    flow.target_rate_bps = min(flow.target_rate_bps, _max_rate(params, flow))
    _set_rate(params, flow, (flow.target_rate_bps + flow.rate_bps) / 2)


def _max_rate(params: Any, flow: Any) -> float:
    max_bps: float = flow.line_rate_bps
    if params.rpg_max_rate_bps > 0:
        max_bps = min(max_bps, params.rpg_max_rate_bps)
    return max_bps


def _set_rate(params: Any, flow: Any, rate_bps: float) -> None:
    max_bps = _max_rate(params, flow)
    # Halving the distance never covers it; the last bit a second is a gift.
    if rate_bps > max_bps - 1:
        rate_bps = max_bps
    flow.rate_bps = max(rate_bps, min(params.rpg_min_rate_bps, max_bps))
