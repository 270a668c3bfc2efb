"""Closed forms: completion times of an incast, a single flow and equal flows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.conformance.netsim.one_switch import (
    FULL_FRAME_BYTES,
    GBPS,
    HOST_DELAY_PS,
    MTU_BYTES,
    incast_finish_ps,
    last_finish_us,
    run_incast,
)
from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.netsim.config.packet import PacketConfig

_CLOSED_FORM = "closed form: wire bytes over the rate, and the latency of the first packet"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    fair = 8 * incast_finish_ps(1, 1_000_000, 400 * GBPS) / 1e6
    return (
        Case(
            name="netsim.incast-8-to-1",
            source=_CLOSED_FORM,
            unit="us",
            **exactly(incast_finish_ps(8, 1_000_000, 400 * GBPS) / 1e6),
            run=partial(last_finish_us, 8, 1_000_000, 400 * GBPS),
        ),
        Case(
            name="netsim.incast-8-to-1-without-overhead",
            source="closed form without headers, preamble and gap: 8 MB over 400 Gb/s and the latency",
            unit="us",
            expected=160.0,
            low=160.0,
            high=160.2,
            run=partial(last_finish_us, 8, 1_000_000, 400 * GBPS, wire_overhead_bytes=0),
        ),
        Case(
            name="netsim.one-flow-goodput",
            source=f"closed form: the rate times {MTU_BYTES} of {FULL_FRAME_BYTES} bytes of a full frame",
            unit="Gb/s",
            **around(400 * MTU_BYTES / FULL_FRAME_BYTES, 1e-4),
            run=_goodput_gbps,
        ),
        Case(
            name="netsim.equal-flows-first-to-finish",
            source="N equal flows through one port: every one finishes within 1 % of N times one alone (N = 8)",
            unit="us",
            **around(fair, 0.01),
            run=partial(_finish_us, 8, 1_000_000, 400 * GBPS, np.min),
        ),
        Case(
            name="netsim.equal-flows-last-to-finish",
            source="N equal flows through one port: every one finishes within 1 % of N times one alone (N = 8)",
            unit="us",
            **around(fair, 0.01),
            run=partial(_finish_us, 8, 1_000_000, 400 * GBPS, np.max),
        ),
    )


def _finish_us(senders: int, message_bytes: int, rate_bps: int, choose: Callable[[NDArray[Any]], Any]) -> float:
    record = run_incast(senders, message_bytes, rate_bps, PacketConfig())
    return float(choose(record.tables["transfers"]["finish_ps"])) / 1e6


def _goodput_gbps() -> float:
    message_bytes = 10_000 * MTU_BYTES
    record = run_incast(1, message_bytes, 400 * GBPS, PacketConfig())
    latency_ps = FULL_FRAME_BYTES * 20 + 2 * HOST_DELAY_PS  # a frame to the switch at 20 ps a byte, and both cables
    return message_bytes * 8 * 1e3 / (int(record.tables["transfers"]["finish_ps"][0]) - latency_ps)
