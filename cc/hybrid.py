"""A window steered by delay and cut at once by ECN: MegaScale's idea, in a design of our own.

MegaScale says that its law joins "the principles of Swift and DCQCN", a precise round trip for the target and ECN for a
fast answer, and publishes no equation, parameter or curve. What follows is this project's answer to that sentence and
no reconstruction; docs/decisions/0032-hybrid-law.md gives the reason for each term, and what each parameter does.

- Target (Swift's): the fabric's delay, without end hosts, against what the unloaded path takes, plus a share of queue,
  plus more for a small window. Below it the window grows by so many packets a round trip, above it shrinks by its
  share of the excess.
- Quick cut (DCQCN's): a notification takes alpha/2 of the window, alpha being the smoothed share of round trips that
  had one. Growth waits a round trip after it.
- One cut a round trip, whichever signal asks first, for both tell of the same queue.
- Recovery (DCQCN's, on Swift's condition): a cut by delay took what was measured to be too much, and is final. A cut by
  ECN is a guess; half the way back is given in each round trip whose delay is below the target.
- Pace: the window's worth over the unloaded round trip, so that packets come evenly, and in flight is never more than
  the window, so that a late signal does no harm.

Source: Jiang et al., "MegaScale", NSDI 2024, section 3.6, for the idea; the terms: Swift (SIGCOMM 2020), algorithm
1 and section 3.5; DCQCN (SIGCOMM 2015), equations 1 and 2, with the gain and the clock of DCTCP (SIGCOMM 2010).
Left out: Swift's window for end hosts, since NICs answer by themselves; growth that would wait for PFC to resume, since
no law learns of pauses.
"""

from typing import Any

from fabrictune.cc.arithmetic import integer_power
from fabrictune.cc.interface import Parameter, Status
from fabrictune.cc.swift import flow_scaling_ps, kept_share

PS_PER_SECOND = 1e12

PARAMETERS = (
    Parameter(
        name="queue_target_ps",
        default=10_000_000,
        low=0,
        high=10**12,
        meaning="target of the fabric's delay above the unloaded round trip, for a large window",
        dtype="i8",
    ),
    Parameter(
        name="flow_scaling_range_ps",
        default=40_000_000,
        low=0,
        high=10**12,
        meaning="the most that a small window adds to the target, as in Swift",
        dtype="i8",
    ),
    Parameter(
        name="flow_scaling_min_packets",
        default=0.1,
        low=1e-6,
        high=1.0,
        meaning="window at and below which the whole range is added",
    ),
    Parameter(
        name="flow_scaling_max_packets",
        default=100.0,
        low=2.0,
        high=1e6,
        meaning="window from which on nothing is added",
    ),
    Parameter(
        name="additive_increase_packets",
        default=1.0,
        low=1e-6,
        high=1e3,
        meaning="what a round trip below the target adds to the window",
    ),
    Parameter(
        name="decrease_factor",
        default=0.8,
        low=0.0,
        high=1.0,
        meaning="beta: how much of the delay's excess over the target, as a share of the delay, a cut takes",
    ),
    Parameter(
        name="max_decrease_fraction",
        default=0.5,
        low=0.0,
        high=0.99,
        meaning="no cut takes more; a loss takes as much",
    ),
    Parameter(
        name="alpha_gain",
        default=1 / 16,
        low=1 / 65536,
        high=1.0,
        meaning="g: weight of the newest round trip in alpha",
    ),
    Parameter(
        name="recovery_fraction",
        default=0.5,
        low=0.0,
        high=1.0,
        meaning="share of the way back to the window before a cut by ECN, given in each round trip below the target",
    ),
    Parameter(
        name="min_cwnd_packets",
        default=0.001,
        low=1e-6,
        high=1e6,
        meaning="smallest window",
    ),
)

STATE = (
    ("window_packets", "f8"),
    ("recovery_packets", "f8"),  # the window before the last cut by ECN
    ("alpha", "f8"),  # as of alpha_time_ps
    ("alpha_time_ps", "i8"),  # start of the last round trip in which a notification came
    ("cnp_time_ps", "i8"),
    ("decrease_time_ps", "i8"),
    ("recovery_time_ps", "i8"),
    ("rtt_ps", "i8"),  # the last one
    ("num_cnps", "i8"),
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start at line rate with what the unloaded path holds, and alpha 1, so that the first notification halves it."""
    flow.alpha = 1.0
    flow.rtt_ps = flow.base_rtt_ps
    flow.cnp_time_ps = now_ps - flow.base_rtt_ps
    flow.decrease_time_ps = now_ps
    flow.recovery_time_ps = now_ps
    _set_window(params, flow, _packets_at_line_rate(flow, flow.base_rtt_ps))
    return Status.OK


def on_ack(
    params: Any,
    flow: Any,
    now_ps: int,
    acked_bytes: int,
    rtt_ps: int,
    endpoint_delay_ps: int,
    num_hops: int,
    is_ecn_marked: int,
    telemetry: Any,
) -> int:
    """Hold the fabric's delay against the target: grow, or shrink."""
    flow.rtt_ps = rtt_ps
    delay_ps = rtt_ps - endpoint_delay_ps
    target_ps = _target_delay_ps(params, flow)
    if delay_ps >= target_ps:
        _cut(params, flow, now_ps, kept_share(params, delay_ps, target_ps))
    elif now_ps - flow.cnp_time_ps >= rtt_ps:
        _recover(params, flow, now_ps)
        step_packets = params.additive_increase_packets * acked_bytes / flow.mtu_bytes
        _set_window(params, flow, flow.window_packets + step_packets / max(flow.window_packets, 1.0))
    return Status.OK


def on_cnp(params: Any, flow: Any, now_ps: int) -> int:
    """Take the notification into alpha, and alpha/2 of the window, which recovery may give back."""
    _note_notification(params, flow, now_ps)
    before_packets = flow.window_packets
    if _cut(params, flow, now_ps, 1 - min(flow.alpha / 2, params.max_decrease_fraction)):
        flow.recovery_packets = before_packets
        flow.recovery_time_ps = now_ps
    return Status.OK


def on_nack(params: Any, flow: Any, now_ps: int) -> int:
    """Cut for a gap, by the largest share."""
    _cut(params, flow, now_ps, 1 - params.max_decrease_fraction)
    return Status.OK


def on_timeout(params: Any, flow: Any, now_ps: int) -> int:
    """Cut for silence, by the largest share."""
    _cut(params, flow, now_ps, 1 - params.max_decrease_fraction)
    return Status.OK


def _target_delay_ps(params: Any, flow: Any) -> float:
    path_ps: float = flow.base_rtt_ps + params.queue_target_ps
    return path_ps + flow_scaling_ps(params, flow.window_packets)


def _note_notification(params: Any, flow: Any, now_ps: int) -> None:
    """Count round trips with a notification into alpha, and at once those without since the last that had one."""
    num_rounds = (now_ps - flow.alpha_time_ps) // flow.rtt_ps
    if flow.num_cnps == 0:
        flow.alpha_time_ps = now_ps
    elif num_rounds > 0:
        alpha = flow.alpha * integer_power(1 - params.alpha_gain, num_rounds)
        flow.alpha = alpha + params.alpha_gain
        flow.alpha_time_ps = now_ps
    flow.cnp_time_ps = now_ps
    flow.num_cnps += 1


def _cut(params: Any, flow: Any, now_ps: int, kept: float) -> bool:
    """Keep a share of the window, unless it was cut within the last round trip; return whether it was."""
    if now_ps - flow.decrease_time_ps < flow.rtt_ps:
        return False
    _set_window(params, flow, flow.window_packets * kept)
    flow.recovery_packets = flow.window_packets
    flow.decrease_time_ps = now_ps
    return True


def _recover(params: Any, flow: Any, now_ps: int) -> None:
    """Once a round trip, go part of the way back to the window before the last cut by ECN."""
    if now_ps - flow.recovery_time_ps >= flow.rtt_ps:
        missing_packets = max(flow.recovery_packets - flow.window_packets, 0.0)
        _set_window(params, flow, flow.window_packets + params.recovery_fraction * missing_packets)
        flow.recovery_time_ps = now_ps


def _set_window(params: Any, flow: Any, window_packets: float) -> None:
    """Set window and pace; no flow needs more than a path at its target holds at line rate."""
    most_packets = _packets_at_line_rate(flow, flow.base_rtt_ps + params.queue_target_ps)
    flow.window_packets = max(min(window_packets, most_packets), params.min_cwnd_packets)
    flow.cwnd_bytes = flow.window_packets * flow.mtu_bytes
    paced_bps = flow.cwnd_bytes * 8 * PS_PER_SECOND / flow.base_rtt_ps
    flow.rate_bps = min(paced_bps, flow.line_rate_bps)


def _packets_at_line_rate(flow: Any, duration_ps: float) -> float:
    held_packets: float = flow.line_rate_bps * duration_ps / (8 * PS_PER_SECOND) / flow.mtu_bytes
    return held_packets
