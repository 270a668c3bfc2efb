"""Barre in the engine: its resting queue and throughput, for flows of 400 Gb/s as in its paper.

The start is left out: the queue of a start at line rate takes flows to the least rate, from which both locks let them
rise only after some 15 ms.
"""

from functools import cache

from fabrictune.cc.barre_fluid import BarreFluid, stable_queue_bytes
from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import FULL_FRAME_BYTES, GBPS
from fabrictune.foundation.cases import Case, around
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig
from fabrictune.netsim.config.transport import CnpConfig

_PAPER = "Barre, USENIX ATC 2025"
_RATE_BPS = 400 * GBPS
_CABLE_MM = 200_000
_RTT_PS = 4_200_000  # four cables of 1 us, two full frames and two acknowledgements
_KMIN_BYTES, _KMAX_BYTES, _PMAX_FRACTION = 100_000, 3_200_000, 0.2
_CONFIG = PacketConfig(
    ecn=EcnConfig(kmin_bytes=_KMIN_BYTES, kmax_bytes=_KMAX_BYTES, pmax_fraction=_PMAX_FRACTION),
    cnp=CnpConfig(interval_ns=1_000),
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return tuple(case for num_flows in (8, 16) for case in (_stable_queue(num_flows), _throughput(num_flows)))


def _stable_queue(num_flows: int) -> Case:
    queue_bytes = stable_queue_bytes(
        BarreFluid(
            num_flows=num_flows,
            capacity_bps=_RATE_BPS,
            packet_bytes=FULL_FRAME_BYTES,
            rtt_ps=_RTT_PS,
            kmin_bytes=_KMIN_BYTES,
            kmax_bytes=_KMAX_BYTES,
            pmax_fraction=_PMAX_FRACTION,
        )
    )
    assert queue_bytes is not None
    return Case(
        name=f"netsim.barre-stable-queue.{num_flows}-flows",
        source="cc/barre_fluid.py, which knows no delay of feedback; here queue and wires delay it",
        unit="KB",
        run=lambda: _settled(num_flows).mean_queue_bytes / 1e3,
        **around(queue_bytes / 1e3, 0.1),
        trust="B",
    )


def _throughput(num_flows: int) -> Case:
    return Case(
        name=f"netsim.barre-incast.{num_flows}-flows",
        source=f"{_PAPER}, appendix A.3: incasts of 16 to 4,096 flows fill 390 to 400 of 400 Gb/s",
        unit="Gb/s",
        expected=395.0,
        low=390.0,
        high=400.1,  # a frame begun is counted whole
        run=lambda: _settled(num_flows).goodput_gbps,
        trust="C",
    )


@cache
def _settled(num_flows: int) -> Settled:
    return watch(
        "barre",
        _CONFIG,
        senders=num_flows,
        rate_bps=_RATE_BPS,
        settle_us=20_000,
        watch_us=4_000,
        cable_mm=_CABLE_MM,
    )
