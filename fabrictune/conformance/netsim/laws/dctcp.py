"""DCTCP in the engine: the queue its analysis gives, on a full link."""

from functools import cache, partial

from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, around
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig

_PAPER = "Alizadeh et al., DCTCP, SIGCOMM 2010, section 3.3"
_RATE_BPS = 10 * GBPS
_MTU_BYTES = 1500
_FRAME_BYTES = PacketConfig(mtu_bytes=_MTU_BYTES).full_frame_bytes
_CABLE_MM = 4_500_000  # 22.5 us, four of which are the analysis' round trip of 90 us


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(
        case
        for num_flows, mark_packets in ((2, 40), (2, 20), (8, 40), (8, 20))
        for case in _cases_at(num_flows, mark_packets)
    )


def _cases_at(num_flows: int, mark_packets: int) -> tuple[Case, Case]:
    name = f"netsim.dctcp-{num_flows}-flows-mark-at-{mark_packets}"
    return (
        Case(
            name=f"{name}.longest-queue",
            source=f"{_PAPER}: the queue's peak is K + N packets",
            unit="packets",
            run=partial(_longest_queue, num_flows, mark_packets),
            **around(mark_packets + num_flows, 0.05),
        ),
        Case(
            name=f"{name}.goodput",
            source=f"{_PAPER}: a mark above a seventh of the path's content keeps the link full",
            unit="Gb/s",
            run=partial(_goodput_gbps, num_flows, mark_packets),
            **around(10.0, 0.01),
        ),
    )


def _longest_queue(num_flows: int, mark_packets: int) -> float:
    return _settled(num_flows, mark_packets).max_queue_bytes / _FRAME_BYTES


def _goodput_gbps(num_flows: int, mark_packets: int) -> float:
    return _settled(num_flows, mark_packets).goodput_gbps


@cache
def _settled(num_flows: int, mark_packets: int) -> Settled:
    step_bytes = mark_packets * _FRAME_BYTES
    ecn = EcnConfig(kmin_bytes=step_bytes - 1, kmax_bytes=step_bytes, pmax_fraction=1.0)
    return watch(
        "dctcp",
        PacketConfig(mtu_bytes=_MTU_BYTES, ecn=ecn),
        senders=num_flows,
        rate_bps=_RATE_BPS,
        settle_us=50_000,
        watch_us=50_000,
        cable_mm=_CABLE_MM,
    )
