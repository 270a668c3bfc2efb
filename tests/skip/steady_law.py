"""A law for tests of exact skip: a rate and a window that nothing changes, and a count of all it is told."""

from typing import Any

from fabrictune.cc.interface import Parameter

PARAMETERS = (
    Parameter(name="rate_fraction", default=1.0, low=1e-6, high=1.0, meaning="of line rate"),
    Parameter(name="window_packets", default=1e6, low=0.1, high=1e6, meaning="bytes in flight, in full payloads"),
    Parameter(name="most_acks", default=2**40, low=0, high=2**40, meaning="that it takes; it refuses more", dtype="i8"),
    Parameter(name="fast_acks", default=2**40, low=0, high=2**40, meaning="after which the rate is half", dtype="i8"),
)
STATE = (("num_acks", "i8"), ("num_marks", "i8"), ("num_signals", "i8"), ("sent_bytes", "i8"), ("waited_ps", "i8"))


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    flow.rate_bps = flow.line_rate_bps * params.rate_fraction
    flow.cwnd_bytes = params.window_packets * flow.mtu_bytes
    return 0


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
    flow.num_acks += 1
    flow.num_marks += is_ecn_marked
    flow.waited_ps += endpoint_delay_ps
    if flow.num_acks == params.fast_acks:
        flow.rate_bps /= 2
    return 0 if flow.num_acks <= params.most_acks else 2  # Status.REFUSED


def on_cnp(params: Any, flow: Any, now_ps: int) -> int:
    flow.num_signals += 1
    return 0


def on_send(params: Any, flow: Any, now_ps: int, sent_bytes: int) -> int:
    flow.sent_bytes += sent_bytes
    return 0
