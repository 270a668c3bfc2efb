"""DCQCN in the engine, against what its paper measured."""

from functools import partial

from foundation.cases import Case
from netsim.config.packet import PacketConfig
from netsim.config.switch import EcnConfig
from netsim.config.transport import CnpConfig
from netsim.conformance.one_switch import GBPS, run_incast, wire_bytes

_TESTBED = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015"
_TESTBED_ECN = EcnConfig(kmin_bytes=5_000, kmax_bytes=200_000, pmax_fraction=0.01)
_SHORT_BYTES, _LONG_BYTES = 20_000_000, 100_000_000


def cases() -> tuple[Case, ...]:
    """Return the cases."""
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


def _settled_gbps(senders: int) -> float:
    """Return what crosses the receiver's cable once the start from line rate is past."""
    config = PacketConfig(ecn=_TESTBED_ECN, cnp=CnpConfig(interval_ns=50_000))
    short_ps, long_ps = (
        int(run_incast(senders, message_bytes, 40 * GBPS, config, law="dcqcn").tables["transfers"]["finish_ps"].max())
        for message_bytes in (_SHORT_BYTES, _LONG_BYTES)
    )
    num_bytes = senders * (wire_bytes(_LONG_BYTES) - wire_bytes(_SHORT_BYTES))
    return num_bytes * 8e3 / (long_ps - short_ps)
