"""What the packet engine claims: closed forms, bounds that nothing may beat, and losslessness under PFC.

All on hosts under one switch, so that every figure can be worked out by hand. The law compiler is imported by the cases
that need it, so that listing them is quick.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foundation.cases import Case, around, exactly
from foundation.records import RunRecord
from foundation.rocev2 import WIRE_OVERHEAD_BYTES
from netsim.config import PacketConfig, PfcConfig
from netsim.headroom import pfc_headroom_bytes

GBPS = 10**9
HOST_CABLE_MM = 2_000
HOST_DELAY_PS = 5 * HOST_CABLE_MM
MTU_BYTES = 4096
FULL_FRAME_BYTES = MTU_BYTES + WIRE_OVERHEAD_BYTES

_CLOSED_FORM = "closed form: wire bytes over the rate, and the latency of the first packet"
_HTSIM = "Broadcom/csg-htsim, validate.txt: {} at 100 Gb/s; lower bound N * S * 8 / C"
_QBB = "IEEE 802.1Qbb annex O; two frames of 9216 B and 20 B of preamble and gap"


def cases() -> tuple[Case, ...]:
    """Return the cases of the packet engine."""
    return (*_closed_forms(), *_bounds(), *_headroom(), *_losslessness())


def incast_finish_ps(senders: int, message_bytes: int, rate_bps: int) -> int:
    """Return when the last byte of an N:1 incast under one switch arrives, if the switch never idles.

    The first packets reach the switch together, after their serialization and the cable; from then on the receiver's
    port is busy with every byte of every sender, and the last crosses its cable.
    """
    num_packets = -(-message_bytes // MTU_BYTES)
    wire_bytes = senders * (message_bytes + num_packets * WIRE_OVERHEAD_BYTES)
    first_bytes = min(message_bytes, MTU_BYTES) + WIRE_OVERHEAD_BYTES
    return (wire_bytes + first_bytes) * 8 * 10**12 // rate_bps + 2 * HOST_DELAY_PS


def _closed_forms() -> tuple[Case, ...]:
    fair = 8 * incast_finish_ps(1, 1_000_000, 400 * GBPS) / 1e6
    return (
        Case(
            name="netsim.incast-8-to-1",
            source=_CLOSED_FORM,
            unit="us",
            **exactly(incast_finish_ps(8, 1_000_000, 400 * GBPS) / 1e6),
            run=partial(_last_finish_us, 8, 1_000_000, 400 * GBPS),
        ),
        Case(
            name="netsim.incast-8-to-1-without-overhead",
            source="closed form without headers, preamble and gap: 8 MB over 400 Gb/s and the latency",
            unit="us",
            expected=160.0,
            low=160.0,
            high=160.2,
            run=partial(_last_finish_us, 8, 1_000_000, 400 * GBPS, wire_overhead_bytes=0),
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
        Case(
            name="netsim.incast-8-to-1-dcqcn",
            source="the closed form as lower bound; DCQCN with its paper's parameters may take half as long again",
            unit="us",
            expected=163.0,
            low=incast_finish_ps(8, 1_000_000, 400 * GBPS) / 1e6,
            high=245.0,
            run=partial(_last_finish_us, 8, 1_000_000, 400 * GBPS, law="dcqcn"),
            trust="B",
        ),
    )


def _bounds() -> tuple[Case, ...]:
    def bound(name: str, what: str, senders: int, message_bytes: int, limit_us: float) -> Case:
        bound_us = senders * message_bytes * 8 / (100 * GBPS) * 1e6
        run = partial(_last_finish_us, senders, message_bytes, 100 * GBPS, wire_overhead_bytes=0)
        return Case(
            name=name, source=_HTSIM.format(what), unit="us", expected=bound_us, low=bound_us, high=limit_us, run=run
        )

    return (
        bound("netsim.htsim-single-flow", "single flow of 2 MB, 180 to 190 us", 1, 2_000_000, 190.0),
        bound("netsim.htsim-incast-15-to-1", "15:1 incast of 2 MB, 2500 us", 15, 2_000_000, 2500.0),
    )


def _headroom() -> tuple[Case, ...]:
    def headroom(rate_gbps: int, cable_m: int, expected_kb: float) -> Case:
        return Case(
            name=f"netsim.pfc-headroom-{rate_gbps}g-{cable_m}m",
            source=_QBB,
            unit="KB",
            expected=expected_kb,
            low=expected_kb - 0.06,
            high=expected_kb + 0.06,
            run=partial(_headroom_kb, rate_gbps, cable_m),
        )

    return (
        headroom(100, 3, 44.1),
        headroom(100, 40, 48.8),
        headroom(100, 100, 56.3),
        headroom(100, 300, 81.3),
        headroom(400, 100, 126.5),
    )


def _losslessness() -> tuple[Case, ...]:
    return (
        Case(
            name="netsim.pfc-drops-with-computed-headroom",
            source="IEEE 802.1Qbb: no packet is lost with headroom computed from cable and rate (31:1 burst, 100 m)",
            unit="packets",
            **exactly(0),
            run=partial(_drops, short_by_bytes=0),
        ),
        Case(
            name="netsim.pfc-drops-with-short-headroom",
            source="the same burst with headroom short of one frame and the bytes on the cable must lose some",
            unit="packets",
            expected=1,
            low=1,
            high=1e9,
            run=partial(_drops, short_by_bytes=FULL_FRAME_BYTES + _cable_bytes(100 * GBPS, 100_000)),
        ),
        Case(
            name="netsim.packets-conserved",
            source="sent = delivered + in flight + dropped, in a run with losses stopped in the middle",
            unit="packets unaccounted for",
            **exactly(0),
            run=_unaccounted_packets,
        ),
    )


def _headroom_kb(rate_gbps: int, cable_m: int) -> float:
    headroom_bytes = pfc_headroom_bytes(rate_bps=rate_gbps * GBPS, delay_ps=5_000 * cable_m, full_frame_bytes=9216 + 20)
    return headroom_bytes / 1e3


def _cable_bytes(rate_bps: int, cable_mm: int) -> int:
    return 2 * 5 * cable_mm * rate_bps // (8 * 10**12)


@cache
def _incast(
    senders: int,
    message_bytes: int,
    rate_bps: int,
    config: PacketConfig,
    *,
    law: str = "none",
    cable_mm: int = HOST_CABLE_MM,
) -> RunRecord:
    from cc.compiling import compile_law
    from cc.loading import load_law
    from netsim.packet import run
    from netsim.workloads import IncastSpec, make_incast
    from topology.builders.clos import ClosSpec, build_clos
    from topology.hashing import HashSpec
    from topology.routing import build_network

    one_switch = ClosSpec(
        num_hosts=senders + 1,
        hosts_per_tor_set=senders + 1,
        nics_per_host=1,
        tiers=2,
        nic_rate_bps=rate_bps,
        uplink_rate_bps=rate_bps,
        downlink_split=1,
        uplinks_per_tor=1,
        host_cable_mm=cable_mm,
    )
    fabric = build_clos(one_switch)
    queue_pairs, traffic = make_incast(IncastSpec(senders=senders, message_bytes=message_bytes), fabric, 0)
    return run(build_network(fabric, queue_pairs, HashSpec()), traffic, compile_law(load_law(law)), config)


def _finish_us(senders: int, message_bytes: int, rate_bps: int, choose: Callable[[NDArray[Any]], Any]) -> float:
    record = _incast(senders, message_bytes, rate_bps, PacketConfig())
    return float(choose(record.tables["transfers"]["finish_ps"])) / 1e6


def _last_finish_us(
    senders: int,
    message_bytes: int,
    rate_bps: int,
    *,
    law: str = "none",
    wire_overhead_bytes: int = WIRE_OVERHEAD_BYTES,
) -> float:
    config = PacketConfig(wire_overhead_bytes=wire_overhead_bytes)
    record = _incast(senders, message_bytes, rate_bps, config, law=law)
    return float(record.tables["transfers"]["finish_ps"].max()) / 1e6


def _goodput_gbps() -> float:
    message_bytes = 10_000 * MTU_BYTES
    record = _incast(1, message_bytes, 400 * GBPS, PacketConfig())
    latency_ps = FULL_FRAME_BYTES * 20 + 2 * HOST_DELAY_PS  # a frame to the switch at 20 ps a byte, and both cables
    return message_bytes * 8 * 1e3 / (int(record.tables["transfers"]["finish_ps"][0]) - latency_ps)


def _drops(*, short_by_bytes: int) -> float:
    rate_bps, cable_mm = 100 * GBPS, 100_000
    headroom_bytes = pfc_headroom_bytes(rate_bps=rate_bps, delay_ps=5 * cable_mm, full_frame_bytes=FULL_FRAME_BYTES)
    config = PacketConfig(
        pfc=PfcConfig(xoff_bytes=10 * FULL_FRAME_BYTES, headroom_bytes=headroom_bytes - short_by_bytes),
        time_limit_ns=2_000_000,
    )
    record = _incast(31, 500_000, rate_bps, config, cable_mm=cable_mm)
    return float(record.tables["ports"]["dropped_packets"].sum())


def _unaccounted_packets() -> float:
    config = PacketConfig(loss_fraction=0.01, retransmission_timeout_ns=50_000, time_limit_ns=100_000)
    packets = _incast(8, 1_000_000, 400 * GBPS, config).run["packets"]
    assert packets["dropped"] > 0, "the run must lose packets to show that they are counted"
    assert packets["in_flight"] > 0, "the run must stop while packets are in flight"
    return float(packets["sent"] - packets["delivered"] - packets["in_flight"] - packets["dropped"])
