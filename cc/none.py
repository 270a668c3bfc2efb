"""No congestion control: every flow sends at its NIC's rate for as long as it has data.

What is left is the fabric's own behaviour (queues, pauses, ECMP collisions), which has closed forms to check against.
"""

from typing import Any

from fabrictune.cc.interface import UNLIMITED_CWND_BYTES, Status

PARAMETERS = ()
STATE = ()


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Send at line rate, without a window, for good."""
    flow.rate_bps = flow.line_rate_bps
    flow.cwnd_bytes = UNLIMITED_CWND_BYTES
    return Status.OK
