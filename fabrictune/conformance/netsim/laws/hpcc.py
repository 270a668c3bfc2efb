"""HPCC in the engine: links at 95 % with next to no queue, as its paper has them."""

from functools import cache

from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, around
from fabrictune.netsim.config.packet import PacketConfig

_PAPER = "Li et al., HPCC, SIGCOMM 2019"
_CONFIG = PacketConfig(mtu_bytes=1000)
_FRAME_BYTES = _CONFIG.with_telemetry().full_frame_bytes
_RATE_GBPS = 100
_CABLE_MM = 200_000  # 1 us, as in the paper's fabric


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(case for num_flows in (2, 16) for case in (_load(num_flows), _queue(num_flows)))


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
