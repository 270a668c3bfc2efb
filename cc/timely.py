"""TIMELY, a rate steered by how delay changes: it rises while delay falls, and falls as fast as delay rises.

The slope of the delay says earlier than the delay itself that a queue is growing, and needs no knowledge of the path.
Below a low delay slopes are noise, and the rate just rises; above a high one it just falls. Between them, five rises in
a row make the next ones five times as large.

Where the rates of all flows add up to the port's, the delay is flat and every division of the port is at rest: the law
has no fixed point of its own, so that its flows need not be fair and its queue may be anything between the two delays.
The patched form adds the distance from the low delay to what is followed, which leaves one fixed point: equal rates,
and a delay of T_low (1 + N delta / (beta C)).

Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1;
constants, analysis, patch: Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016.
The paper's links have 10 Gbps. The step follows the NICs' rate; both delays and minRTT are times that the paper sets
for a data centre, and the HPCC authors leave them as they are at 100 Gbps.
Left out: a segment sent as one burst, for the engine paces packets; so a round trip is a packet's, without the time a
segment takes at line rate, which TIMELY subtracts.
"""

from typing import Any

from fabrictune.cc.interface import UNLIMITED_CWND_BYTES, Parameter, Status
from fabrictune.cc.link_rules import of_rate

PARAMETERS = (
    Parameter(
        name="is_patched",
        default=0,
        low=0,
        high=1,
        meaning="1: between the two delays, follow the delay's distance from T_low as well as its slope",
        dtype="i8",
    ),
    Parameter(
        name="low_delay_ps",
        default=50_000_000,
        low=1_000_000,
        high=10**12,
        meaning="T_low: round trip below which the rate rises whatever the slope",
        dtype="i8",
    ),
    Parameter(
        name="high_delay_ps",
        default=500_000_000,
        low=1_000_000,
        high=10**12,
        meaning="T_high: round trip above which the rate falls whatever the slope",
        dtype="i8",
    ),
    Parameter(
        name="min_rtt_ps",
        default=20_000_000,
        low=1_000_000,
        high=10**12,
        meaning="minRTT: what slopes are measured in, a change by so much between two segments being 1",
        dtype="i8",
    ),
    Parameter(
        name="slope_gain",
        default=0.875,
        low=1e-6,
        high=1.0,
        meaning="alpha: weight of the newest change of delay in the slope",
    ),
    Parameter(
        name="segment_bytes",
        default=16_000,
        low=1,
        high=10**9,
        meaning="payload acknowledged between two looks at the delay",
        dtype="i8",
    ),
    Parameter(
        name="additive_increase_bps",
        default=10e6,
        low=1e3,
        high=1e12,
        meaning="delta: step of a rise",
        rule=of_rate(10e6, 10e9, source="the public simulator of Li et al., HPCC, SIGCOMM 2019, for its comparison"),
    ),
    Parameter(
        name="decrease_factor",
        default=0.8,
        low=0.0,
        high=1.0,
        meaning="beta: share of the rate that a slope of 1, or a delay far above T_high, takes",
    ),
    Parameter(
        name="patched_decrease_factor",
        default=0.008,
        low=0.0,
        high=1.0,
        meaning="beta of the patched form between the two delays: share of the rate that a delay of 2 T_low takes",
    ),
    Parameter(
        name="hyper_increase_stages",
        default=5,
        low=1,
        high=1000,
        meaning="rises in a row after which the step is `hyper_increase_steps` times as large",
        dtype="i8",
    ),
    Parameter(
        name="hyper_increase_steps",
        default=5,
        low=1,
        high=1000,
        meaning="N: how many steps a rise takes then",
        dtype="i8",
    ),
    Parameter(
        name="first_rate_fraction",
        default=1.0,
        low=1e-6,
        high=1.0,
        meaning="rate of a new flow, as a share of line rate; the paper's hosts divide it among their flows",
    ),
    Parameter(name="min_rate_bps", default=10e6, low=1e3, high=1e12, meaning="no cut goes below this rate"),
)

STATE = (
    ("counted_bytes", "i8"),  # of the segment under way
    ("num_segments", "i8"),
    ("last_rtt_ps", "i8"),
    ("change_ps", "f8"),  # smoothed, from one segment to the next
    ("num_rises", "i8"),  # in a row, on a flat or falling delay
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start without a window."""
    flow.cwnd_bytes = UNLIMITED_CWND_BYTES
    _set_rate(params, flow, flow.line_rate_bps * params.first_rate_fraction)
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
    """Look at the delay once a segment has been acknowledged."""
    flow.counted_bytes += acked_bytes
    if flow.counted_bytes >= params.segment_bytes:
        flow.counted_bytes = 0
        _note_slope(params, flow, rtt_ps)
        _follow(params, flow, rtt_ps)
    return Status.OK


def _note_slope(params: Any, flow: Any, rtt_ps: int) -> None:
    if flow.num_segments > 0:
        flow.change_ps += params.slope_gain * (rtt_ps - flow.last_rtt_ps - flow.change_ps)
    flow.last_rtt_ps = rtt_ps
    flow.num_segments += 1


def _follow(params: Any, flow: Any, rtt_ps: int) -> None:
    """Set the rate that algorithm 1 gives, or the patched form between the two delays."""
    slope = flow.change_ps / params.min_rtt_ps
    is_between = params.low_delay_ps <= rtt_ps <= params.high_delay_ps
    flow.num_rises = flow.num_rises + 1 if is_between and slope <= 0 else 0
    if rtt_ps < params.low_delay_ps:
        _set_rate(params, flow, flow.rate_bps + params.additive_increase_bps)
    elif rtt_ps > params.high_delay_ps:
        _cut(params, flow, params.decrease_factor * (1 - params.high_delay_ps / rtt_ps))
    elif params.is_patched == 1:
        _weigh(params, flow, slope, rtt_ps)
    elif slope <= 0:
        steps = params.hyper_increase_steps if flow.num_rises >= params.hyper_increase_stages else 1
        _set_rate(params, flow, flow.rate_bps + steps * params.additive_increase_bps)
    else:
        _cut(params, flow, params.decrease_factor * slope)


def _weigh(params: Any, flow: Any, slope: float, rtt_ps: int) -> None:
    """Weigh a step against a cut by the delay's distance from T_low, by halves where the delay is flat."""
    weight = min(max(2 * slope + 0.5, 0.0), 1.0)
    excess = (rtt_ps - params.low_delay_ps) / params.low_delay_ps
    kept = 1 - params.patched_decrease_factor * weight * excess
    _set_rate(params, flow, params.additive_increase_bps * (1 - weight) + flow.rate_bps * kept)


def _cut(params: Any, flow: Any, share: float) -> None:
    _set_rate(params, flow, flow.rate_bps * (1 - share))


def _set_rate(params: Any, flow: Any, rate_bps: float) -> None:
    flow.rate_bps = min(max(rate_bps, params.min_rate_bps), flow.line_rate_bps)
