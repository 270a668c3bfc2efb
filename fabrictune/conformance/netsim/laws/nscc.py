"""NSCC in the engine: the queue rests at the target delay, on a full link that flows share."""

from collections.abc import Iterator
from functools import cache, partial

from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, around
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig

_SOURCE = "Ultra Ethernet Specification 1.0, section 3.6.13"
_RATE_BPS = 100 * GBPS
_CABLE_MM = 550_000  # 11 us of cables, 12 us with the frames: the specification's reference network
_BDP_BYTES = 150_000
_ECN = EcnConfig(kmin_bytes=_BDP_BYTES // 5, kmax_bytes=_BDP_BYTES * 4 // 5, pmax_fraction=1.0)  # section 3.6.17


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for num_flows in (2, 8, 32):
        name = f"netsim.nscc-{num_flows}-flows"
        yield Case(
            name=f"{name}.queue",
            source=f"{_SOURCE}: cuts begin at the target, and below it marked packets change nothing",
            unit="of what the link sends in the target delay",
            run=partial(_queue_over_target, num_flows),
            **around(1.0, 0.1),
        )
        yield Case(
            name=f"{name}.goodput",
            source=f"{_SOURCE}: a target of a round trip keeps the link full",
            unit="Gb/s",
            run=partial(_goodput_gbps, num_flows),
            **around(100.0, 0.01),
        )
        yield Case(
            name=f"{name}.fairness",
            source=f"{_SOURCE}: all increase by the same and cut by the same share",
            unit="Jain's index",
            expected=1.0,
            low=0.97,
            high=1.0,
            run=partial(_fairness, num_flows),
        )


def _queue_over_target(num_flows: int) -> float:
    return _settled(num_flows).mean_queue_bytes / _BDP_BYTES


def _goodput_gbps(num_flows: int) -> float:
    return _settled(num_flows).goodput_gbps


def _fairness(num_flows: int) -> float:
    return _settled(num_flows).fairness


@cache
def _settled(num_flows: int) -> Settled:
    return watch(
        "nscc",
        PacketConfig(ecn=_ECN),
        senders=num_flows,
        rate_bps=_RATE_BPS,
        settle_us=8_000,
        watch_us=8_000,
        start_us=(0, 50),
        cable_mm=_CABLE_MM,
    )
