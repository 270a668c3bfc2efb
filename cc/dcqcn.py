"""DCQCN, the rate control of RoCEv2 NICs, in the form its paper gives.

A switch marks packets by the length of its queue, the receiver answers marks with at most one CNP per interval, and the
sender cuts its rate by a share alpha/2 that remembers how often it was notified. Between cuts a timer and a byte
counter each raise the rate: first half-way back to the rate before the cut, then the target itself in small steps,
then, once both have expired often enough, in large ones.

The alpha timer never fires here. Its decay by (1 - g) per interval is a power, taken when the next CNP needs it.

A receiver that paces CNPs faster than the paper's 50 us is heeded at the paper's pace: `decrease_interval_ps`.

Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1, equations 1 to 4;
the window: Li et al., "HPCC", SIGCOMM 2019, section 5.1 (DCQCN+win). The paper names no hyper increase and no floor of
the rate; those defaults are the values of its authors' and of later public simulators.
The paper's links have 40 Gbps. Steps and byte counter follow the NICs' rate: with them the fluid model of "ECN or
Delay" (CoNEXT 2016) is the same at every rate, in shares of it. It is as slow in time: R_AI is a thousandth of the rate
every 55 us, so that a flow cut to nothing is back after some 50 ms.
The form NIC firmware uses goes by the same name and is another controller, `cc/dcqcn_firmware.py`: its alpha counts
slots of 1 us with and without CNPs, and halves in 0.14 ms where this one's takes 9.7 ms.
"""

from typing import Any

from fabrictune.cc.arithmetic import integer_power
from fabrictune.cc.interface import UNLIMITED_CWND_BYTES, Parameter, Status
from fabrictune.cc.link_rules import of_rate

RATE_TIMER = 0
PS_PER_SECOND = 1e12

_FLUID_MODEL = "Zhu et al., ECN or Delay, CoNEXT 2016, equations 2 to 4, which keep their form"

VARIANT = "the paper's of 2015; NICs run another form, dcqcn_firmware"

PARAMETERS = (
    Parameter(
        name="alpha_gain",
        default=1 / 256,
        low=1 / 65536,
        high=1.0,
        meaning="g: weight of the newest CNP in alpha",
    ),
    Parameter(
        name="alpha_timer_ps",
        default=55_000_000,
        low=1_000_000,
        high=10**12,
        meaning="K: without a CNP for this long, alpha decays by one factor 1 - g",
        dtype="i8",
    ),
    Parameter(
        name="decrease_interval_ps",
        default=50_000_000,
        low=0,
        high=10**12,
        meaning="N: a CNP sooner than this after the last one heeded is ignored",
        dtype="i8",
    ),
    Parameter(
        name="rate_timer_ps",
        default=55_000_000,
        low=1_000_000,
        high=10**12,
        meaning="T: time between two increases by the timer",
        dtype="i8",
    ),
    Parameter(
        name="byte_counter_bytes",
        default=10_000_000,
        low=0,
        high=10**12,
        meaning="B: payload between two increases by the byte counter; 0 for none, as in the public ns-3 models",
        dtype="i8",
        rule=of_rate(10_000_000, 40e9, source=_FLUID_MODEL),
    ),
    Parameter(
        name="fast_recovery_stages",
        default=5,
        low=1,
        high=1000,
        meaning="F: expiries before the target rate rises",
        dtype="i8",
    ),
    Parameter(
        name="additive_increase_bps",
        default=40e6,
        low=1e3,
        high=1e12,
        meaning="R_AI: step of the target rate once either counter has reached F",
        rule=of_rate(40e6, 40e9, source=_FLUID_MODEL),
    ),
    Parameter(
        name="hyper_increase_bps",
        default=200e6,
        low=1e3,
        high=1e12,
        meaning="R_HAI: step of the target rate once both counters have passed F",
        rule=of_rate(200e6, 40e9, source=_FLUID_MODEL),
    ),
    Parameter(
        name="min_rate_bps",
        default=100e6,
        low=1e3,
        high=1e12,
        meaning="no cut goes below this rate",
    ),
    Parameter(
        name="clamp_target",
        default=1,
        low=0,
        high=1,
        meaning="1: every cut lowers the target rate (equation 1); 0: only a cut that follows an increase, as NICs do",
        dtype="i8",
    ),
    Parameter(
        name="is_windowed",
        default=0,
        low=0,
        high=1,
        meaning="1: keep at most one base round trip's worth of the current rate in flight",
        dtype="i8",
    ),
)

STATE = (
    ("target_rate_bps", "f8"),  # R_T
    ("alpha", "f8"),  # as of decrease_time_ps
    ("decrease_time_ps", "i8"),
    ("num_decreases", "i8"),
    ("counted_bytes", "i8"),
    ("timer_stage", "i8"),  # T and BC: expiries since the last cut
    ("byte_stage", "i8"),
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start at line rate with alpha 1, so that the first CNP halves the rate."""
    flow.alpha = 1.0
    flow.target_rate_bps = flow.line_rate_bps
    flow.decrease_time_ps = now_ps
    _set_rate(params, flow, flow.line_rate_bps)
    return Status.OK


def on_cnp(params: Any, flow: Any, now_ps: int) -> int:
    """Decay alpha for the time without CNPs (equation 2), cut the rate and raise alpha (equation 1), start over."""
    elapsed_ps = now_ps - flow.decrease_time_ps
    if flow.num_decreases > 0:
        if elapsed_ps < params.decrease_interval_ps:
            return Status.OK
        flow.alpha = flow.alpha * integer_power(1 - params.alpha_gain, elapsed_ps // params.alpha_timer_ps)
    if params.clamp_target == 1 or flow.timer_stage > 0 or flow.byte_stage > 0:
        flow.target_rate_bps = flow.rate_bps
    _set_rate(params, flow, flow.rate_bps * (1 - flow.alpha / 2))
    flow.alpha = (1 - params.alpha_gain) * flow.alpha + params.alpha_gain
    flow.decrease_time_ps = now_ps
    flow.num_decreases += 1
    flow.counted_bytes = 0
    flow.timer_stage = 0
    flow.byte_stage = 0
    flow.deadline_ps[RATE_TIMER] = now_ps + params.rate_timer_ps
    return Status.OK


def on_timer(params: Any, flow: Any, now_ps: int, timer: int) -> int:
    """Raise the rate and count one expiry of the rate timer, which rests once the flow is back at line rate."""
    _increase(params, flow)
    flow.timer_stage += 1
    if flow.rate_bps < flow.line_rate_bps:
        flow.deadline_ps[RATE_TIMER] = now_ps + params.rate_timer_ps
    return Status.OK


def on_send(params: Any, flow: Any, now_ps: int, sent_bytes: int) -> int:
    """Count bytes; when the byte counter expires, raise the rate. At line rate there is nothing left to raise."""
    if flow.rate_bps >= flow.line_rate_bps or params.byte_counter_bytes == 0:
        return Status.OK
    flow.counted_bytes += sent_bytes
    if flow.counted_bytes >= params.byte_counter_bytes:
        flow.counted_bytes -= params.byte_counter_bytes
        _increase(params, flow)
        flow.byte_stage += 1
    return Status.OK


def _increase(params: Any, flow: Any) -> None:
    """Raise the rate by the stage both counters have reached: equation 3, or 4, or 4 with the larger step."""
    if min(flow.timer_stage, flow.byte_stage) > params.fast_recovery_stages:
        _raise_target(flow, params.hyper_increase_bps)
    elif max(flow.timer_stage, flow.byte_stage) >= params.fast_recovery_stages:
        _raise_target(flow, params.additive_increase_bps)
    _set_rate(params, flow, (flow.target_rate_bps + flow.rate_bps) / 2)


def _raise_target(flow: Any, step_bps: float) -> None:
    flow.target_rate_bps = min(flow.target_rate_bps + step_bps, flow.line_rate_bps)


def _set_rate(params: Any, flow: Any, rate_bps: float) -> None:
    # Halving the distance to line rate never covers it; the last bit a second is a gift.
    if rate_bps > flow.line_rate_bps - 1:
        rate_bps = flow.line_rate_bps
    flow.rate_bps = max(rate_bps, min(params.min_rate_bps, flow.line_rate_bps))
    if params.is_windowed == 1:
        flow.cwnd_bytes = flow.rate_bps * flow.base_rtt_ps / (8 * PS_PER_SECOND)
    else:
        flow.cwnd_bytes = UNLIMITED_CWND_BYTES
