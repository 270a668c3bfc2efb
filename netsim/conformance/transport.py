"""Reliability: what a lost packet costs, and how long a queue pair goes on.

On two hosts under one switch, with losses drawn for every wire or the receiver's answers lost altogether.
"""

import math
from functools import partial

from foundation.cases import Case, around
from foundation.records import RunRecord
from netsim.config.packet import PacketConfig
from netsim.config.transport import TransportConfig
from netsim.conformance.one_switch import FULL_FRAME_BYTES, GBPS, HOST_DELAY_PS, MTU_BYTES, run_incast

_RATE_BPS = 100 * GBPS
_FRAME_PS = FULL_FRAME_BYTES * 8 * 10**12 // _RATE_BPS
_NUM_PACKETS = 40_000
_TIMEOUT_NS = 100_000


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_goodput(), *_budgets())


def _goodput() -> tuple[Case, ...]:
    """Go-back-N: a loss costs the packets of a round trip, and a timeout where its answer or its repetition is lost."""
    source = "renewal: a loss repeats a round trip of packets; one whose answer or repetition is lost waits the timeout"
    return tuple(
        Case(
            name=f"netsim.go-back-n-goodput-loss-{loss:g}",
            source=source,
            unit="share of the rate",
            **around(_goodput_share(loss), 0.05),
            run=partial(_measured_share, loss),
        )
        for loss in (1e-4, 1e-3, 1e-2)
    )


def _budgets() -> tuple[Case, ...]:
    def budget(name: str, source: str, transport: TransportConfig) -> Case:
        expected_ms = transport.budget_ps / 1e9
        return Case(
            name=f"netsim.failure-after-{name}",
            source=source,
            unit="ms",
            expected=expected_ms,
            low=expected_ms - 0.001,
            high=expected_ms + 0.001,
            run=partial(_failed_after_ms, transport),
        )

    study = "unionxic/rdma-fault-characterization: R * 2 * 4.096 us * 2**max(T, 16) less the early stage's saving"
    return (
        budget(
            "eight-waits",
            "InfiniBand 9.7.6: R = 7 retries are eight waits of 4.096 us * 2**8",
            TransportConfig(timeout_exponent=8),
        ),
        budget("adaptive-t14", study, TransportConfig(floor_exponent=16, multiplier=2, adaptive=True)),
        budget(
            "adaptive-t20", study, TransportConfig(timeout_exponent=20, floor_exponent=16, multiplier=2, adaptive=True)
        ),
    )


def _round_trip_packets() -> float:
    """Return the packets that leave between a lost one and the answer to the one behind it."""
    ack_ps = 84 * 8 * 10**12 // _RATE_BPS
    round_trip_ps = 2 * _FRAME_PS + 2 * ack_ps + 4 * HOST_DELAY_PS
    return round_trip_ps / _FRAME_PS


def _goodput_share(loss: float) -> float:
    """Return the share of the rate with two wires each way; a gap is answered once."""
    lost = 1 - (1 - loss) ** 2
    repeated = math.ceil(_round_trip_packets()) + 1
    waited = 2 * lost * _TIMEOUT_NS * 1000 / _FRAME_PS
    return MTU_BYTES / FULL_FRAME_BYTES / (1 + lost / (1 - lost) * (repeated + waited))


def _measured_share(loss: float) -> float:
    config = PacketConfig(loss_fraction=loss, transport=TransportConfig(timeout_ns=_TIMEOUT_NS, retries=7))
    record = run_incast(1, _NUM_PACKETS * MTU_BYTES, _RATE_BPS, config)
    return _NUM_PACKETS * MTU_BYTES * 8e12 / _RATE_BPS / float(record.tables["transfers"]["acknowledged_ps"][0])


def _failed_after_ms(transport: TransportConfig) -> float:
    record: RunRecord = run_incast(1, MTU_BYTES, _RATE_BPS, PacketConfig(loss_fraction=1.0, transport=transport))
    return float(record.run["end_ps"]) / 1e9
