"""Reliability: cost of a lost packet, and retry limits of a queue pair.

On two hosts under one switch, with losses drawn for every wire or the receiver's answers lost altogether.
"""

import math
from functools import partial
from itertools import count
from typing import Literal, get_args

from fabrictune.conformance.netsim.one_switch import FULL_FRAME_BYTES, GBPS, HOST_DELAY_PS, MTU_BYTES, run_incast
from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.retransmission import CONNECTX_6, rnr_wait_ps
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.transport import RnrConfig, TransportConfig

Reliability = Literal["go-back-n", "selective-repeat"]
RELIABILITIES: tuple[Reliability, ...] = get_args(Reliability)

_RATE_BPS = 100 * GBPS
_FRAME_PS = FULL_FRAME_BYTES * 8 * 10**12 // _RATE_BPS
_NUM_PACKETS = 40_000
_TIMEOUT_NS = 100_000
_SLOW_PACKETS = 10_000
_DRAIN_RATE_BPS = 40 * GBPS
_LAST_HOP = 1  # ports come in pairs: host 0 and its switch first
_FULL_SHARE = MTU_BYTES / FULL_FRAME_BYTES
_ACK_PS = PacketConfig().ack_bytes * 8 * 10**12 // _RATE_BPS
_ROUND_TRIP_PS = 2 * _FRAME_PS + 2 * _ACK_PS + 4 * HOST_DELAY_PS  # two links there, two back


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_goodput(), *_single_losses(), *_budgets(), *_rnr_naks(), *_slow_receivers())


def _goodput() -> tuple[Case, ...]:
    """Go-back-N: a loss costs the packets of a round trip, and a timeout where its answer or its repetition is lost."""

    def goodput(reliability: Reliability, loss: float, source: str, share: float, margin: float) -> Case:
        return Case(
            name=f"netsim.{reliability}-goodput-loss-{loss:g}",
            source=source,
            unit="share of the rate",
            **around(share, margin),
            run=partial(_measured_share, reliability, loss),
        )

    renewal = (
        "renewal: a loss repeats a round trip of packets; one whose answer or repetition is lost waits the timeout"
    )
    repeats = "closed form: every packet is sent until it crosses both wires, and nothing else is"
    losses = (1e-4, 1e-3, 1e-2)
    return (
        *(goodput("go-back-n", loss, renewal, _go_back_n_share(loss), 0.05) for loss in losses),
        *(goodput("selective-repeat", loss, repeats, _FULL_SHARE * (1 - loss) ** 2, 0.01) for loss in losses),
    )


def _single_losses() -> tuple[Case, ...]:
    """One data packet lost among a hundred, and the one packet of a message."""
    gap = "closed form: the gap shows with the next packet, its answer goes back, and all sent meanwhile goes again"
    tail = "InfiniBand 9.7.6: only the timeout reveals the loss of a last packet"
    return (
        Case(
            name="netsim.gap-costs-a-round-trip",
            source=gap,
            unit="ns",
            expected=_ROUND_TRIP_PS / 1e3,
            low=_ROUND_TRIP_PS / 1e3,
            high=(_ROUND_TRIP_PS + 2 * _FRAME_PS) / 1e3,
            run=partial(_cost_of_one_loss_ns, "go-back-n", 100),
        ),
        Case(
            name="netsim.gap-costs-a-packet-with-selective-repeat",
            source="closed form: while a packet is missed and sent again, the others go on",
            unit="ns",
            **around(_FRAME_PS / 1e3, 1e-6),
            run=partial(_cost_of_one_loss_ns, "selective-repeat", 100),
        ),
        *(
            Case(
                name=f"netsim.tail-loss-costs-the-timeout-{reliability}",
                source=tail,
                unit="ns",
                **exactly(float(_TIMEOUT_NS)),
                run=partial(_cost_of_one_loss_ns, reliability, 1),
            )
            for reliability in RELIABILITIES
        ),
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

    study = "unionxic/rdma-fault-characterization, as foundation/retransmission.py has it: early series and R - 1 waits"
    return (
        budget(
            "eight-waits",
            "InfiniBand 9.7.6: R = 7 retries are eight waits of 4.096 us * 2**8",
            TransportConfig(timeout_exponent=8),
        ),
        budget("adaptive-t14", study, TransportConfig(timers=CONNECTX_6)),
        budget("adaptive-t20", study, TransportConfig(timeout_exponent=20, timers=CONNECTX_6)),
    )


def _rnr_naks() -> tuple[Case, ...]:
    """The second of two messages for which one receive is posted, and posted again while its sender waits."""

    def rnr_nak(timer_code: int) -> Case:
        delay_ns = (rnr_wait_ps(timer_code) + _ROUND_TRIP_PS) / 1e3
        return Case(
            name=f"netsim.rnr-nak-costs-the-timer-{timer_code}",
            source=f"InfiniBand 9.7.5.2.8 and table 45: RNR timer {timer_code}, and the round trip of the RNR NAK",
            unit="ns",
            **exactly(delay_ns),
            run=partial(_cost_of_an_rnr_nak_ns, timer_code),
        )

    return tuple(rnr_nak(timer_code) for timer_code in (1, 12, 31))


def _slow_receivers() -> tuple[Case, ...]:
    """A host that takes 40 Gb/s of the 100 that come."""
    drain_us = _SLOW_PACKETS * FULL_FRAME_BYTES * 8e6 / _DRAIN_RATE_BPS
    first_us = 2 * (_FRAME_PS + HOST_DELAY_PS) / 1e6
    return (
        Case(
            name="netsim.slow-receiver-takes-its-drain-rate",
            source="closed form: from the first frame's arrival the host never waits for the next",
            unit="us",
            **around(first_us + drain_us, 1e-9),
            run=lambda: _finish_ps(_slow_run()) / 1e6,
        ),
        Case(
            name="netsim.slow-receiver-pauses-and-loses-nothing",
            source="IEEE 802.1Qbb annex N: the headroom takes all that comes after the pause",
            unit="packets dropped",
            **exactly(0.0),
            run=lambda: float(_slow_run().tables["ports"]["dropped_packets"].sum()),
        ),
        Case(
            name="netsim.slow-receiver-silences-its-switch",
            source="closed form: the switch's port to the host sends 40 of 100 Gb/s, and is paused for the rest",
            unit="of the time",
            **around(1 - _DRAIN_RATE_BPS / _RATE_BPS, 0.05),
            run=_paused_share,
        ),
    )


def _go_back_n_share(loss: float) -> float:
    """Return the share of the rate with two wires each way; a gap is answered once."""
    lost = 1 - (1 - loss) ** 2
    repeated = math.ceil(_ROUND_TRIP_PS / _FRAME_PS) + 1
    waited = 2 * lost * _TIMEOUT_NS * 1000 / _FRAME_PS
    return _FULL_SHARE / (1 + lost / (1 - lost) * (repeated + waited))


def _measured_share(reliability: Reliability, loss: float) -> float:
    config = PacketConfig(loss_fraction=loss, transport=_transport(reliability))
    record = run_incast(1, _NUM_PACKETS * MTU_BYTES, _RATE_BPS, config)
    return _NUM_PACKETS * MTU_BYTES * 8e12 / _RATE_BPS / float(record.tables["transfers"]["acknowledged_ps"][0])


def _cost_of_one_loss_ns(reliability: Reliability, num_packets: int) -> float:
    """Return the delay of a message by the loss of one data packet, in the first run with exactly that loss.

    In a message of many packets the timeout distinguishes a lost tail from a gap.
    """
    message_bytes, transport = num_packets * MTU_BYTES, _transport(reliability)
    whole = run_incast(1, message_bytes, _RATE_BPS, PacketConfig(transport=transport))
    lossy = PacketConfig(loss_fraction=0.2 / num_packets, transport=transport)
    records = (run_incast(1, message_bytes, _RATE_BPS, lossy, seed=seed) for seed in count())
    alone = (
        record for record in records if record.run["packets"]["data_dropped"] == record.run["packets"]["dropped"] == 1
    )
    costs_ns = (float(_finish_ps(record) - _finish_ps(whole)) / 1e3 for record in alone)
    return next(cost_ns for cost_ns in costs_ns if num_packets == 1 or cost_ns < _TIMEOUT_NS / 2)


def _cost_of_an_rnr_nak_ns(timer_code: int) -> float:
    """Return the delay of a second message by an RNR NAK."""

    def finish_ps(receives: int | None) -> int:
        rnr = RnrConfig(receives=receives, replenish_ns=1_000, timer_code=timer_code)
        config = PacketConfig(transport=TransportConfig(rnr=rnr))
        record = run_incast(1, MTU_BYTES, _RATE_BPS, config, messages=2)
        return int(record.tables["transfers"]["finish_ps"][1])

    return (finish_ps(1) - finish_ps(None)) / 1e3


def _slow_run() -> RunRecord:
    config = PacketConfig(nic=NicConfig(drain_rate_bps=_DRAIN_RATE_BPS, receive_buffer_bytes=200_000))
    return run_incast(1, _SLOW_PACKETS * MTU_BYTES, _RATE_BPS, config)


def _paused_share() -> float:
    """Return how long the port before the receiver was paused; it is the only one that its NIC pauses."""
    ports = _slow_run().tables["ports"]
    last_hop = ports["paused_ps"][_LAST_HOP]
    return float(last_hop) / _finish_ps(_slow_run())


def _finish_ps(record: RunRecord) -> int:
    return int(record.tables["transfers"]["finish_ps"][0])


def _transport(reliability: Reliability) -> TransportConfig:
    return TransportConfig(reliability=reliability, timeout_ns=_TIMEOUT_NS, retries=7)


def _failed_after_ms(transport: TransportConfig) -> float:
    record: RunRecord = run_incast(1, MTU_BYTES, _RATE_BPS, PacketConfig(loss_fraction=1.0, transport=transport))
    return float(record.run["end_ps"]) / 1e9
