"""A law for tests: every handler, a window that falls below one packet, and timers that move both ways."""

from typing import Any

PARAMETERS = ()
STATE = (("num_acks", "i8"), ("num_signals", "i8"))


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    flow.rate_bps = flow.line_rate_bps / 3
    flow.cwnd_bytes = 2.5 * flow.mtu_bytes
    flow.deadline_ps[2] = now_ps + 7_000_000
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
    if is_ecn_marked or rtt_ps - endpoint_delay_ps > 3 * flow.base_rtt_ps:
        flow.cwnd_bytes = max(flow.cwnd_bytes * 0.6, 0.3 * flow.mtu_bytes)
    else:
        flow.cwnd_bytes += acked_bytes / 4
    flow.deadline_ps[1] = now_ps + 1_000_000 + rtt_ps // 2
    return 0


def on_cnp(params: Any, flow: Any, now_ps: int) -> int:
    flow.num_signals += 1
    flow.rate_bps = max(flow.rate_bps * 0.7, flow.line_rate_bps / 100)
    return 0


def on_timer(params: Any, flow: Any, now_ps: int, timer: int) -> int:
    if timer == 2:
        flow.rate_bps = min(flow.rate_bps * 1.5, flow.line_rate_bps)
        flow.deadline_ps[2] = now_ps + 3_000_000
    else:
        flow.cwnd_bytes = min(flow.cwnd_bytes * 1.3, 20.0 * flow.mtu_bytes)
    return 0


def on_nack(params: Any, flow: Any, now_ps: int) -> int:
    flow.num_signals += 1
    flow.cwnd_bytes = max(flow.cwnd_bytes / 2, 0.5 * flow.mtu_bytes)
    return 0


def on_timeout(params: Any, flow: Any, now_ps: int) -> int:
    flow.num_signals += 1
    flow.cwnd_bytes = 0.5 * flow.mtu_bytes
    return 0


def on_send(params: Any, flow: Any, now_ps: int, sent_bytes: int) -> int:
    flow.num_signals += sent_bytes % 2
    return 0
