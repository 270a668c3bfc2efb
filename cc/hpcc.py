"""HPCC: the switches say how full they are, and the sender sets its window to what is left.

Each acknowledgement brings back, for each switch port on the way, its clock, the bytes it has sent, its queue and its
rate. Two of them give the port's inflight bytes as a share of what it can have in flight: throughput over capacity, and
queue over bandwidth times base round trip. The window is divided by how far the fullest port is above `eta`, so that
links run at 95 % and queues stay empty.

The window follows every acknowledgement, but always from the reference window W_c of the last round trip, so that the
same congestion is not answered twice. A round trip is over when a packet is acknowledged that was sent after it began.

Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1 and section 5.1 (eta 95 %, at
most 5 stages of additive increase; W_AI as a rate, 50 Mb/s, is the authors' ns-3 setting, whose published figures have
no stages: `max_stages` 0).
The sender's NIC is no switch and is left out of the measurement, as in the paper. The base round trip T is one for the
whole network, a little above its longest, as in the paper (13 us in its simulations): it is the time that a measurement
is averaged over, and a flow with a share of a packet in its own short round trip would measure noise.
Left out: the identity of a path. A flow whose packets are sprayed compares ports that are not the same.
"""

from typing import Any

from fabrictune.cc.interface import MAX_TELEMETRY_HOPS, Parameter, Status
from fabrictune.cc.link_rules import Rule, of_rate, whole_us_above_rtt

PS_PER_SECOND = 1e12
USES_TELEMETRY = True

PARAMETERS = (
    Parameter(
        name="target_utilization_fraction",
        default=0.95,
        low=0.01,
        high=1.0,
        meaning="eta: share of a port's capacity that flows together aim at",
    ),
    Parameter(
        name="max_stages",
        default=5,
        low=0,
        high=1000,
        meaning="round trips of additive increase before the window follows the measurement again; 0 for none",
        dtype="i8",
    ),
    Parameter(
        name="additive_increase_bps",
        default=50e6,
        low=0.0,
        high=1e12,
        meaning="W_AI over the base round trip: what each flow adds, and with it fairness",
        rule=of_rate(50e6, 100e9, source="Li et al., SIGCOMM 2019, section 3.3: W_AI = W_init (1 - eta) / N, N = 100"),
    ),
    Parameter(
        name="network_rtt_ps",
        default=13_000_000,
        low=0,
        high=10**12,
        meaning="T: base round trip of the network, or a flow's own where that is longer",
        dtype="i8",
        rule=Rule(
            value=whole_us_above_rtt,
            text="the next whole us above the longest unloaded round trip of a flow",
            source="Li et al., SIGCOMM 2019, section 5.1: 9 us for 8.5 us, 13 us for 12 us",
        ),
    ),
    Parameter(name="min_rate_bps", default=100e6, low=1e3, high=1e12, meaning="no window is below this rate's"),
)

STATE = (
    ("reference_cwnd_bytes", "f8"),  # W_c
    ("utilization", "f8"),  # U, averaged over about a round trip
    ("round_trip_ps", "i8"),  # T
    ("stage", "i8"),
    ("round_start_ps", "i8"),
    ("num_seen_hops", "i8"),  # of the acknowledgement before
    ("last_time_ps", "i8", (MAX_TELEMETRY_HOPS,)),
    ("last_tx_bytes", "i8", (MAX_TELEMETRY_HOPS,)),
    ("last_queue_bytes", "i8", (MAX_TELEMETRY_HOPS,)),
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start at line rate, with a window that fills the path."""
    flow.round_trip_ps = max(params.network_rtt_ps, flow.base_rtt_ps)
    flow.reference_cwnd_bytes = _bytes_per_round_trip(flow, flow.line_rate_bps)
    _apply(flow, flow.reference_cwnd_bytes)
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
    """Measure, and set the window by the fullest port."""
    if flow.num_seen_hops == num_hops:
        _measure(flow, num_hops, telemetry)
        _react(params, flow, now_ps, rtt_ps)
    flow.num_seen_hops = num_hops
    for hop in range(1, num_hops):
        flow.last_time_ps[hop] = telemetry[hop].time_ps
        flow.last_tx_bytes[hop] = telemetry[hop].tx_bytes
        flow.last_queue_bytes[hop] = telemetry[hop].queue_bytes
    return Status.OK


def _measure(flow: Any, num_hops: int, telemetry: Any) -> None:
    """Average the fullest port's inflight share into U, weighted by the time it was measured over (MeasureInflight)."""
    fullest = 0.0
    fullest_ps = 0
    for hop in range(1, num_hops):
        elapsed_ps = telemetry[hop].time_ps - flow.last_time_ps[hop]
        if elapsed_ps > 0:
            sent_bits = 8.0 * (telemetry[hop].tx_bytes - flow.last_tx_bytes[hop])
            queued_bits = 8.0 * min(telemetry[hop].queue_bytes, flow.last_queue_bytes[hop])
            share = (sent_bits / elapsed_ps + queued_bits / flow.round_trip_ps) * (
                PS_PER_SECOND / telemetry[hop].rate_bps
            )
            if share > fullest:
                fullest = share
                fullest_ps = elapsed_ps
    weight = min(fullest_ps, flow.round_trip_ps) / flow.round_trip_ps
    flow.utilization = (1 - weight) * flow.utilization + weight * fullest


def _react(params: Any, flow: Any, now_ps: int, rtt_ps: int) -> None:
    """Set the window from W_c, and W_c once in a round trip (ComputeWind)."""
    increase_bytes = _bytes_per_round_trip(flow, params.additive_increase_bps)
    excess = flow.utilization / params.target_utilization_fraction
    follows_measurement = excess >= 1 or flow.stage >= params.max_stages
    cwnd_bytes = flow.reference_cwnd_bytes + increase_bytes
    if follows_measurement:
        cwnd_bytes = flow.reference_cwnd_bytes / excess + increase_bytes
    lowest_bps = min(params.min_rate_bps, flow.line_rate_bps)
    cwnd_bytes = max(cwnd_bytes, _bytes_per_round_trip(flow, lowest_bps))
    cwnd_bytes = min(cwnd_bytes, _bytes_per_round_trip(flow, flow.line_rate_bps))
    _apply(flow, cwnd_bytes)
    if now_ps - rtt_ps >= flow.round_start_ps:
        flow.stage = 0 if follows_measurement else flow.stage + 1
        flow.reference_cwnd_bytes = cwnd_bytes
        flow.round_start_ps = now_ps


def _apply(flow: Any, cwnd_bytes: float) -> None:
    """Send while less than the window is in flight, paced over the base round trip.

    The authors' sender lets the packet out that passes the window; the engine's lets none. So it gets one more.
    """
    flow.cwnd_bytes = cwnd_bytes + flow.mtu_bytes
    flow.rate_bps = min(cwnd_bytes * 8 * PS_PER_SECOND / flow.round_trip_ps, flow.line_rate_bps)


def _bytes_per_round_trip(flow: Any, rate_bps: float) -> float:
    num_bytes: float = rate_bps * flow.round_trip_ps / (8 * PS_PER_SECOND)
    return num_bytes
