"""Rate decrease by a quarter per round trip with an ECN-marked acknowledgement, otherwise increase by 1 Gbps.

A law to begin from: it sets a rate and a window from the events of a flow, and keeps its state in the flow. See
docs/how-to/add-a-law.md for what an engine calls, and `fabrictune law show` for how parameters are shown.
"""

from typing import Any

from fabrictune.cc.interface import UNLIMITED_CWND_BYTES, Parameter, Status

PARAMETERS = (
    Parameter(name="decrease_fraction", default=0.25, low=0.0, high=0.9, meaning="fractional decrease by a cut"),
    Parameter(name="increase_bps", default=1e9, low=1e6, high=1e12, meaning="increase per round trip without marks"),
    Parameter(name="min_rate_bps", default=1e8, low=1e6, high=1e12, meaning="lowest rate after a cut"),
)

STATE = (
    ("round_end_ps", "i8"),  # when the round trip ends that is watched for marks
    ("num_marked", "i8"),  # marked acknowledgements in it
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start at line rate without a window."""
    flow.rate_bps = flow.line_rate_bps
    flow.cwnd_bytes = UNLIMITED_CWND_BYTES
    flow.round_end_ps = now_ps + flow.base_rtt_ps
    return Status.OK


def on_ack(
    params: Any,
    flow: Any,
    now_ps: int,
    acked_bytes: int,
    rtt_ps: int,
    endpoint_delay_ps: int,
    num_hops: int,
    is_ecn_marked: bool,
    telemetry: Any,
) -> int:
    """Count marks, and set the next rate once a round trip."""
    flow.num_marked += is_ecn_marked
    if now_ps >= flow.round_end_ps:
        flow.rate_bps = next_rate(params, flow)
        flow.round_end_ps = now_ps + rtt_ps
        flow.num_marked = 0
    return Status.OK


def next_rate(params: Any, flow: Any) -> Any:
    """Return the rate of the next round trip."""
    if flow.num_marked > 0:
        return max(flow.rate_bps * (1 - params.decrease_fraction), params.min_rate_bps)
    return min(flow.rate_bps + params.increase_bps, flow.line_rate_bps)
