"""NSCC, the window of Ultra Ethernet: marks say that a queue grows, delay says how far it has grown.

A mark leads and a delay lags, since a switch marks by the queue that a packet leaves behind. The two make four cases:

- no mark, delay below the target: grow in proportion to what is left of the target, or fast where there is no delay
- no mark, delay above it: the queue has gone; grow by the same for every flow, which makes them fair
- a mark, delay below it: the queue begins; wait, for another path may be free
- a mark, delay above it: shrink by the mean delay's excess over the target, at most once a round trip

Growth is gathered, and added for every eight packets or round trip. Where packets are trimmed or the delay is several
targets, and a round trip has brought less than an eighth of the largest window, quick adapt sets the window to what
arrived, and marks of packets that were in flight then count for nothing.

Source: Ultra Ethernet Specification 1.0, section 3.6.13: 3.6.13.3 for the parameters, 3.6.13.5 and 3.6.13.6 for the
rules, which are in `cc/nscc_window.py`. Three things it leaves open are as the consortium's public htsim model has
them: a delay counts as none up to 1 us (`clear_delay_ps`), the mean delay moves by 1/80 an acknowledgement, an unmarked
delay above the target counting as a quarter of a round trip (`delay_gain`), and where switches begin to mark
(`MARKING`). The window counts payload, where the specification counts headers, too. What is in flight is counted by
sendings, acknowledgements and losses; a gap counts as one packet. Left out: the receiver's penalty (3.6.13.2); Probe
CP; times in steps of 128 ns.
"""

from typing import Any

from fabrictune.cc.interface import Parameter, Status
from fabrictune.cc.link_rules import MarkingRule
from fabrictune.cc.nscc_window import (
    PS_PER_SECOND,
    REFERENCE_BDP_BYTES,
    add_growth,
    bound_window,
    decrease,
    increase_in_proportion,
    note_delay,
    note_round_trip,
    quick_adapt,
)

MARKING = MarkingRule(
    kmin_bytes=lambda link: 0.2 * link.bytes_in(link.base_rtt_ps),
    kmax_factor=4,
    pmax_fraction=1.0,
    text="0.2 and 0.8 of what the NICs send in the longest unloaded round trip, 100 %",
    source="the Ultra Ethernet Consortium's htsim model, main_uec.cpp, commit 40ccb05",
)

PARAMETERS = (
    Parameter(
        name="network_rtt_ps",
        default=0,
        low=0,
        high=10**12,
        meaning="config_base_rtt: unloaded round trip of the network's longest path; 0 takes each flow's own",
        dtype="i8",
    ),
    Parameter(
        name="target_fraction",
        default=1.0,
        low=0.01,
        high=100.0,
        meaning="target_qdelay in that round trip: 1 where switches drop, 0.75 where they trim",
    ),
    Parameter(
        name="max_window_fraction",
        default=1.5,
        low=0.1,
        high=1000.0,
        meaning="MaxWnd in bandwidth-delay products; a flow starts with it",
    ),
    Parameter(
        name="proportional_increase_packets",
        default=4.0,
        low=0.0,
        high=1e4,
        meaning="alpha: what a round trip without a mark and without delay adds at the reference network",
    ),
    Parameter(
        name="fair_increase_packets",
        default=5.0,
        low=0.0,
        high=1e4,
        meaning="fi: what a round trip without a mark and with delay adds at the reference network",
    ),
    Parameter(
        name="steady_increase_packets",
        default=0.15,
        low=0.0,
        high=1e3,
        meaning="eta: what every round trip adds at the reference network",
    ),
    Parameter(
        name="fast_increase_fraction",
        default=0.25,
        low=0.0,
        high=1e3,
        meaning="fi_scale: what a byte acknowledged adds once a window had no delay, at the reference network",
    ),
    Parameter(
        name="clear_delay_ps",
        default=1_000_000,
        low=0,
        high=10**12,
        meaning="delay below which there is none",
        dtype="i8",
    ),
    Parameter(
        name="decrease_factor",
        default=0.8,
        low=0.0,
        high=1.0,
        meaning="gamma: how much of the mean delay's excess over the target, as a share of it, a cut takes",
    ),
    Parameter(
        name="min_kept_fraction",
        default=0.5,
        low=0.01,
        high=1.0,
        meaning="max_md_jump: what every cut leaves",
    ),
    Parameter(
        name="quick_adapt_fraction",
        default=0.125,
        low=0.0,
        high=1.0,
        meaning="2^-qa_gate: share of the largest window below which a round trip's arrivals let quick adapt run",
    ),
    Parameter(
        name="quick_adapt_delay_factor",
        default=4.0,
        low=0.0,
        high=1e6,
        meaning="qa_threshold in targets: delay above which quick adapt runs without a trimmed packet",
    ),
    Parameter(
        name="adjust_packets",
        default=8.0,
        low=0.0,
        high=1e6,
        meaning="adjust_bytes_threshold: arrivals after which gathered growth is added before the round trip ends",
    ),
    Parameter(
        name="delay_gain",
        default=0.0125,
        low=1e-6,
        high=1.0,
        meaning="weight of the newest delay in the mean",
    ),
)

STATE = (
    ("target_ps", "f8"),  # target_qdelay
    ("scaling", "f8"),  # scaling_a: bandwidth-delay product over the reference network's
    ("max_cwnd_bytes", "f8"),
    ("in_flight_bytes", "f8"),
    ("arrived_bytes", "f8"),  # achieved_bytes: since quick adapt was last looked at
    ("unadjusted_bytes", "f8"),  # received_bytes: since growth was last added
    ("growth_bytes2", "f8"),  # inc_bytes: gathered growth times the window
    ("clear_bytes", "f8"),  # fi_count: arrived without delay and mark
    ("ignored_bytes", "f8"),
    ("bytes_to_ignore", "f8"),
    ("mean_delay_ps", "f8"),
    ("round_trip_ps", "i8"),  # config_base_rtt
    ("least_rtt_ps", "i8"),  # base_rtt
    ("adapt_ps", "i8"),  # qa_endtime: when quick adapt is looked at again; 0 before the first time
    ("last_adjust_ps", "i8"),
    ("last_decrease_ps", "i8"),
    ("has_trim", "i8"),  # trigger_qa
    ("is_fast", "i8"),  # increase_mode
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start with the largest window."""
    flow.round_trip_ps = params.network_rtt_ps if params.network_rtt_ps > 0 else flow.base_rtt_ps
    flow.least_rtt_ps = flow.round_trip_ps
    flow.target_ps = params.target_fraction * flow.round_trip_ps
    flow.scaling = flow.line_rate_bps * flow.round_trip_ps / (8 * PS_PER_SECOND) / REFERENCE_BDP_BYTES
    flow.last_adjust_ps = now_ps
    flow.last_decrease_ps = now_ps
    flow.rate_bps = flow.line_rate_bps
    bound_window(params, flow)
    flow.cwnd_bytes = flow.max_cwnd_bytes
    return Status.OK


def on_send(params: Any, flow: Any, now_ps: int, sent_bytes: int) -> int:
    """Count what is in flight (NSCC.OnSend)."""
    flow.in_flight_bytes = min(flow.in_flight_bytes + sent_bytes, flow.max_cwnd_bytes)
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
    """Take one of the four cases, unless quick adapt runs (NSCC.OnACK)."""
    flow.in_flight_bytes = max(flow.in_flight_bytes - acked_bytes, 0.0)
    flow.ignored_bytes += acked_bytes
    flow.unadjusted_bytes += acked_bytes
    flow.arrived_bytes += acked_bytes
    note_round_trip(params, flow, rtt_ps - endpoint_delay_ps)
    delay_ps = rtt_ps - endpoint_delay_ps - flow.least_rtt_ps
    note_delay(params, flow, delay_ps, is_ecn_marked)
    if quick_adapt(params, flow, now_ps, is_ecn_marked, delay_ps) == 1:
        return Status.OK
    if is_ecn_marked == 0 and delay_ps >= flow.target_ps:
        flow.growth_bytes2 += params.fair_increase_packets * flow.mtu_bytes * flow.scaling * acked_bytes
    elif is_ecn_marked == 0:
        increase_in_proportion(params, flow, acked_bytes, delay_ps)
    elif delay_ps >= flow.target_ps:
        decrease(params, flow, now_ps)
    is_late = now_ps - flow.last_adjust_ps >= flow.round_trip_ps
    if is_late or flow.unadjusted_bytes > params.adjust_packets * flow.mtu_bytes:
        add_growth(params, flow, now_ps, is_late)
    return Status.OK


def on_nack(params: Any, flow: Any, now_ps: int) -> int:
    """Take a packet for lost (NSCC.OnInferredLoss)."""
    _lose(flow, flow.mtu_bytes)
    return Status.OK


def on_trim(params: Any, flow: Any, now_ps: int, trimmed_bytes: int, rtt_ps: int, is_last_hop: int) -> int:
    """Take the packet off the window, unless quick adapt runs, and its delay for a round trip (NSCC.OnNACK)."""
    flow.in_flight_bytes = max(flow.in_flight_bytes - trimmed_bytes, 0.0)
    flow.ignored_bytes += trimmed_bytes
    flow.has_trim = 1
    note_round_trip(params, flow, rtt_ps)
    note_delay(params, flow, float(flow.round_trip_ps), 1)
    if quick_adapt(params, flow, now_ps, 1, 0.0) == 0:
        flow.cwnd_bytes = max(flow.cwnd_bytes - trimmed_bytes, float(flow.mtu_bytes))
    return Status.OK


def on_timeout(params: Any, flow: Any, now_ps: int) -> int:
    """Take all that is in flight for lost."""
    _lose(flow, flow.in_flight_bytes)
    return Status.OK


def _lose(flow: Any, lost_bytes: float) -> None:
    flow.cwnd_bytes = max(flow.cwnd_bytes - lost_bytes, float(flow.mtu_bytes))
    flow.ignored_bytes += lost_bytes
    flow.in_flight_bytes = max(flow.in_flight_bytes - lost_bytes, 0.0)
