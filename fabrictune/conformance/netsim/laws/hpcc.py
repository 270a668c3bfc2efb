"""HPCC in the engine: links at 95 % with next to no queue, as its paper has them."""

from functools import cache

from fabrictune.cc.link_rules import Link, whole_us_above_rtt
from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.units import PS_PER_US
from fabrictune.netsim.config.packet import PacketConfig

_PAPER = "Li et al., HPCC, SIGCOMM 2019"
_CONFIG = PacketConfig(mtu_bytes=1000)
_FRAME_BYTES = _CONFIG.with_telemetry().full_frame_bytes
_RATE_GBPS = 100
_CABLE_MM = 200_000  # 1 us, as in the paper's fabric


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for num_flows in (2, 16) for case in (_load(num_flows), _queue(num_flows))),
        *(_utilization(cables_us) for cables_us in (1, 4, 16)),
    )


def _load(num_flows: int) -> Case:
    return Case(
        name=f"netsim.hpcc-{num_flows}-to-1.load",
        source=f"{_PAPER}, section 3.2: flows together keep to eta of the link",
        unit="of the link's rate",
        run=lambda: _settled(num_flows).goodput_gbps / _RATE_GBPS,
        **around(0.95, 0.02),
    )


def _queue(num_flows: int) -> Case:
    return Case(
        name=f"netsim.hpcc-{num_flows}-to-1.queue",
        source=f"{_PAPER}, section 5: near-zero queues; in front of the receiver, on average, at that load",
        unit="packets",
        expected=0.0,
        low=0.0,
        high=3.0,
        run=lambda: _settled(num_flows).mean_queue_bytes / _FRAME_BYTES,
        trust="B",
    )


def _utilization(cables_us: int) -> Case:
    """Two flows without stages, W_AI 50 Mb/s each: U = eta + 2 W_AI / (B T) for every T that fits the fabric."""
    return Case(
        name=f"netsim.hpcc-2-to-1.utilization.{cables_us}-us",
        source=f"{_PAPER}, algorithm 1 at rest, U = eta + N W_AI / (B T), with T as the defaults derive it",
        unit="of the link's rate",
        run=lambda: _without_stages(cables_us) / _RATE_GBPS,
        **around(0.951, 0.002),
    )


def _without_stages(cables_us: int) -> float:
    """Return the goodput in Gb/s over cables that take so long both ways together."""
    serialization_ps = 2 * (_FRAME_BYTES + _CONFIG.with_telemetry().ack_bytes) * 8000 // _RATE_GBPS
    link = Link(
        rate_bps=_RATE_GBPS * GBPS,
        base_rtt_ps=cables_us * PS_PER_US + serialization_ps,
        num_hops=2,
        mtu_bytes=_CONFIG.mtu_bytes,
        queue_limit_bytes=_CONFIG.pfc.buffer_bytes,
    )
    return watch(
        "hpcc",
        _CONFIG,
        senders=2,
        rate_bps=_RATE_GBPS * GBPS,
        settle_us=1_000,
        watch_us=500,
        cable_mm=_CABLE_MM * cables_us // 4,
        settings=(("max_stages", 0), ("network_rtt_ps", whole_us_above_rtt(link, {}))),
    ).goodput_gbps


@cache
def _settled(num_flows: int) -> Settled:
    return watch(
        "hpcc",
        _CONFIG,
        senders=num_flows,
        rate_bps=_RATE_GBPS * GBPS,
        settle_us=1_500,
        watch_us=2_000,
        cable_mm=_CABLE_MM,
    )
