"""A law outside the project: a fixed share of line rate."""

from typing import Any

from fabrictune.cc.interface import UNLIMITED_CWND_BYTES, Parameter, Status

PARAMETERS = (Parameter(name="share_fraction", default=0.5, low=0.01, high=1.0, meaning="of line rate"),)
STATE = ()


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Send at the share, for good."""
    flow.rate_bps = flow.line_rate_bps * params.share_fraction
    flow.cwnd_bytes = UNLIMITED_CWND_BYTES
    return Status.OK
