"""DCQCN in the engine: its paper's measurements, and the flaws that others found."""

from functools import cache, partial

from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS, run_incast, wire_bytes
from fabrictune.foundation.cases import Case, exactly
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig
from fabrictune.netsim.config.transport import CnpConfig

_TESTBED = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015"
_TESTBED_ECN = EcnConfig(kmin_bytes=5_000, kmax_bytes=200_000, pmax_fraction=0.01)
_SHORT_BYTES, _LONG_BYTES = 20_000_000, 100_000_000


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_incasts(), *_pauses())


def _incasts() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"netsim.dcqcn-incast-{senders}-to-1",
            source=f"{_TESTBED}, experiments (quoted from memory): an incast of up to 20 fills over 39 of 40 Gb/s"
            " with the paper's parameters; here between the 20th and the 100th MB of each flow",
            unit="Gb/s",
            expected=39.5,
            low=39.0,
            high=40.0,
            run=partial(_settled_gbps, senders),
            trust="C",
        )
        for senders in (2, 8, 16)
    )


def _pauses() -> tuple[Case, ...]:
    source = (
        "HPCC's ns-3, issue 14: plain DCQCN pauses its senders, DCQCN with a window of the rate's round trip does not;"
        " 16 hosts of 100 Gb/s begin at once, 1 us a link"
    )
    return (
        Case(
            name="netsim.dcqcn-plain.pauses",
            source=source,
            unit="pauses",
            expected=1,
            low=1,
            high=1_000_000,
            run=lambda: _from_line_rate(is_windowed=0).num_pauses,
            trust="B",
        ),
        Case(
            name="netsim.dcqcn-windowed.pauses",
            source=source,
            unit="pauses",
            run=lambda: _from_line_rate(is_windowed=1).num_pauses,
            **exactly(0),
            trust="B",
        ),
    )


@cache
def _from_line_rate(*, is_windowed: int) -> Settled:
    return watch(
        "dcqcn",
        PacketConfig(mtu_bytes=1000),
        senders=16,
        rate_bps=100 * GBPS,
        settle_us=1_000,
        watch_us=200,
        settings=(("is_windowed", is_windowed),),
        cable_mm=200_000,
    )


def _settled_gbps(senders: int) -> float:
    """Return what crosses the receiver's cable once the start from line rate is past."""
    config = PacketConfig(ecn=_TESTBED_ECN, cnp=CnpConfig(interval_ns=50_000))
    short_ps, long_ps = (
        int(run_incast(senders, message_bytes, 40 * GBPS, config, law="dcqcn").tables["transfers"]["finish_ps"].max())
        for message_bytes in (_SHORT_BYTES, _LONG_BYTES)
    )
    num_bytes = senders * (wire_bytes(_LONG_BYTES) - wire_bytes(_SHORT_BYTES))
    return num_bytes * 8e3 / (long_ps - short_ps)
