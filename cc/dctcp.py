"""DCTCP: a window cut once a round trip by half of the share of marked bytes, smoothed over round trips.

A step mark at a short queue and a cut in proportion keep the queue near the mark. On lossless fabrics it is the window
next to DCQCN's rate: the same alpha, informed by every acknowledgement instead of once per notification.

A round trip has passed when a packet is acknowledged that was sent after the last one had begun.

Source: Alizadeh et al., "Data Center TCP", SIGCOMM 2010, section 3.1, equations 1 and 2; RFC 8257 for losses,
the first alpha and g 1/16.
Left out: slow start, for an RDMA queue pair starts with what the unloaded path holds at line rate; the echo of marks
through delayed acknowledgements, for here an acknowledgement says whether anything since the last one was marked.
"""

from typing import Any

from fabrictune.cc.interface import Parameter, Status
from fabrictune.cc.link_rules import MarkingRule

PS_PER_SECOND = 1e12

MARKING = MarkingRule(
    kmin_bytes=lambda link: max(link.bytes_in(link.base_rtt_ps) / 7, 30_000 * link.rate_bps / 10e9),
    kmax_factor=1,
    pmax_fraction=1.0,
    text="a step at 30 KB for each 10 Gbps of the NICs, or rate times round trip / 7 where that is more",
    source="Alizadeh et al., SIGCOMM 2010, equation 13, and Li et al., HPCC, SIGCOMM 2019, section 5.1",
)

PARAMETERS = (
    Parameter(
        name="alpha_gain",
        default=1 / 16,
        low=1 / 65536,
        high=1.0,
        meaning="g: weight of the newest round trip in alpha, the share of marked bytes",
    ),
    Parameter(
        name="additive_increase_packets",
        default=1.0,
        low=1e-6,
        high=1e3,
        meaning="what a round trip without marks adds to the window",
    ),
    Parameter(name="min_cwnd_packets", default=2.0, low=0.001, high=1e6, meaning="no cut goes below this window"),
    Parameter(
        name="max_cwnd_packets",
        default=10_000.0,
        low=1.0,
        high=1e6,
        meaning="no increase goes above this window",
    ),
)

STATE = (
    ("alpha", "f8"),
    ("round_start_ps", "i8"),  # packets sent from here on end the round trip
    ("round_bytes", "i8"),
    ("round_marked_bytes", "i8"),
    ("decrease_time_ps", "i8"),
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start at line rate with the window that takes, and with alpha 1, so that the first mark halves it."""
    flow.alpha = 1.0
    flow.rate_bps = flow.line_rate_bps
    flow.round_start_ps = now_ps
    flow.decrease_time_ps = now_ps
    _set_window(params, flow, flow.line_rate_bps * flow.base_rtt_ps / (8 * PS_PER_SECOND))
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
    """Count marked bytes, cut at the round trip's first mark, and grow by acknowledged bytes otherwise."""
    sent_ps = now_ps - rtt_ps
    flow.round_bytes += acked_bytes
    if is_ecn_marked == 1:
        flow.round_marked_bytes += acked_bytes
    if sent_ps >= flow.round_start_ps:
        _end_round(params, flow, now_ps)
    if is_ecn_marked == 1 and sent_ps >= flow.decrease_time_ps:
        flow.decrease_time_ps = now_ps
        _set_window(params, flow, flow.cwnd_bytes * (1 - flow.alpha / 2))
    elif is_ecn_marked == 0:
        step_bytes = params.additive_increase_packets * flow.mtu_bytes
        _set_window(params, flow, flow.cwnd_bytes + step_bytes * acked_bytes / flow.cwnd_bytes)
    return Status.OK


def on_nack(params: Any, flow: Any, now_ps: int) -> int:
    """Halve the window for a loss, once a round trip, as TCP does (RFC 8257)."""
    if now_ps - flow.decrease_time_ps >= flow.base_rtt_ps:
        flow.decrease_time_ps = now_ps
        _set_window(params, flow, flow.cwnd_bytes / 2)
    return Status.OK


def on_timeout(params: Any, flow: Any, now_ps: int) -> int:
    """Start over from the smallest window."""
    flow.decrease_time_ps = now_ps
    _set_window(params, flow, 0.0)
    return Status.OK


def _end_round(params: Any, flow: Any, now_ps: int) -> None:
    """Take the share of marked bytes into alpha (equation 1)."""
    marked = flow.round_marked_bytes / max(flow.round_bytes, 1)
    flow.alpha = (1 - params.alpha_gain) * flow.alpha + params.alpha_gain * marked
    flow.round_start_ps = now_ps
    flow.round_bytes = 0
    flow.round_marked_bytes = 0


def _set_window(params: Any, flow: Any, cwnd_bytes: float) -> None:
    floored = max(cwnd_bytes, params.min_cwnd_packets * flow.mtu_bytes)
    flow.cwnd_bytes = min(floored, max(params.max_cwnd_packets, params.min_cwnd_packets) * flow.mtu_bytes)
