"""Barre: a rate that falls a little with every CNP and rises a little with every round trip that had none.

There is no alpha and no target. A CNP, of which the receiver sends one each microsecond, takes 3 % of the rate. A round
ends, and adds a fixed step, when both locks are open: a round trip is over and 8 KB have been sent, so that slow flows
do not add faster than they hear of marks. Rounds without CNPs in a row make the step larger. While far more is in
flight than the rate explains, a flow sends at a quarter of its rate until the next CNP.

Source: "Barre", USENIX ATC 2025, sections 4 (step, cut, spacing of CNPs), 4.2.2 (dual lock), 4.2.3 (inflight monitor)
and 5.1 (a step for each flow's round trip). Public are the rules and ranges; ours are, within them, the share a cut
takes, the rounds before the larger step, and the least rate. The inflight monitor compares bytes in a round trip with
rate times round trip; a flow that keeps its pace exceeds that just when its round trip is longer than the base one, so
this is what is compared. Ours is by how much: fourfold, so that at a quarter of the rate the bytes in flight are those
of the base round trip; at once, every standing queue would count. Ours too is that the quarter also ends when the round
trip is shorter again, since a flow that never hears a CNP again would stay slow.
Set `engine.cnp.interval` to 1 us; a receiver that waits longer makes every cut rarer.
"""

from typing import Any

from fabrictune.cc.interface import NEVER, Parameter, Status

ROUND_TIMER = 0

PARAMETERS = (
    Parameter(
        name="additive_increase_bps",
        default=10e6,
        low=1e3,
        high=1e12,
        meaning="alpha: what a round without CNPs adds to the rate",
    ),
    Parameter(
        name="fast_increase_fraction",
        default=0.001,
        low=0.0,
        high=1.0,
        meaning="A: the larger step, as a share of the line rate",
    ),
    Parameter(
        name="fast_increase_rounds",
        default=5,
        low=0,
        high=10**9,
        meaning="K: rounds without CNPs before the larger step",
        dtype="i8",
    ),
    Parameter(name="kept_fraction", default=0.97, low=0.5, high=1.0, meaning="beta: what a CNP leaves of the rate"),
    Parameter(
        name="lock_bytes",
        default=8_000,
        low=0,
        high=10**9,
        meaning="payload that has to be sent, besides a round trip to pass, before a round ends",
        dtype="i8",
    ),
    Parameter(
        name="step_rtt_ps",
        default=0,
        low=0,
        high=10**9,
        meaning="C: the small step is alpha times round trip over this; 0 for the same step whatever the round trip",
        dtype="i8",
    ),
    Parameter(
        name="inflight_kept_fraction",
        default=0.25,
        low=0.01,
        high=1.0,
        meaning="share of its rate at which a flow sends while one over this times the base round trip's worth is in"
        " flight; 1 for no inflight monitor",
    ),
    Parameter(name="min_rate_bps", default=10e6, low=1e3, high=1e12, meaning="no cut goes below this rate"),
)

STATE = (
    ("sent_bytes", "i8"),  # since the round began
    ("has_round_trip_passed", "i8"),
    ("clean_rounds", "i8"),
    ("is_held_back", "i8"),  # by the inflight monitor
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start at line rate, where there is nothing to add."""
    flow.rate_bps = flow.line_rate_bps
    return Status.OK


def on_cnp(params: Any, flow: Any, now_ps: int) -> int:
    """End what the inflight monitor holds back, cut, and begin a round."""
    _hold_back(params, flow, 0)
    least_bps = min(params.min_rate_bps, flow.line_rate_bps)
    flow.rate_bps = max(flow.rate_bps * params.kept_fraction, least_bps)
    flow.clean_rounds = 0
    _begin_round(params, flow, now_ps)
    return Status.OK


def on_timer(params: Any, flow: Any, now_ps: int, timer: int) -> int:
    """Open the one lock; the other may be open already."""
    flow.has_round_trip_passed = 1
    _end_round(params, flow, now_ps)
    return Status.OK


def on_send(params: Any, flow: Any, now_ps: int, sent_bytes: int) -> int:
    """Count towards the other lock."""
    flow.sent_bytes += sent_bytes
    _end_round(params, flow, now_ps)
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
    """Hold a flow back whose round trip is so much longer than it should be: that many too many bytes are in flight."""
    is_too_much = (rtt_ps - endpoint_delay_ps) * params.inflight_kept_fraction > flow.base_rtt_ps
    _hold_back(params, flow, 1 if is_too_much else 0)
    return Status.OK


def _hold_back(params: Any, flow: Any, is_held_back: int) -> None:
    if is_held_back > flow.is_held_back:
        flow.rate_bps = flow.rate_bps * params.inflight_kept_fraction
    elif is_held_back < flow.is_held_back:
        flow.rate_bps = flow.rate_bps / params.inflight_kept_fraction
    flow.is_held_back = is_held_back


def _max_rate(params: Any, flow: Any) -> float:
    max_bps: float = flow.line_rate_bps
    if flow.is_held_back == 1:
        max_bps = max_bps * params.inflight_kept_fraction
    return max_bps


def _end_round(params: Any, flow: Any, now_ps: int) -> None:
    """Add a step if both locks are open."""
    if flow.has_round_trip_passed == 0 or flow.sent_bytes <= params.lock_bytes:
        return
    flow.clean_rounds += 1
    step_bps = params.additive_increase_bps
    if flow.clean_rounds > params.fast_increase_rounds:
        step_bps = params.fast_increase_fraction * flow.line_rate_bps
    elif params.step_rtt_ps > 0:
        step_bps = params.additive_increase_bps * flow.base_rtt_ps / params.step_rtt_ps
    max_bps = _max_rate(params, flow)
    flow.rate_bps = min(flow.rate_bps + step_bps * (max_bps / flow.line_rate_bps), max_bps)
    _begin_round(params, flow, now_ps)


def _begin_round(params: Any, flow: Any, now_ps: int) -> None:
    """Close both locks; at line rate rounds rest."""
    flow.sent_bytes = 0
    flow.has_round_trip_passed = 0
    flow.deadline_ps[ROUND_TIMER] = NEVER
    if flow.rate_bps < _max_rate(params, flow):
        flow.deadline_ps[ROUND_TIMER] = now_ps + flow.base_rtt_ps
