"""PFC: the headroom of the standard, losslessness with it, and no packet unaccounted for."""

from functools import partial

from fabrictune.conformance.netsim.one_switch import FULL_FRAME_BYTES, GBPS, run_incast
from fabrictune.foundation.cases import Case, exactly
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.headroom import pfc_headroom_bytes

_QBB = "IEEE 802.1Qbb annex O; two frames of 9216 B and 20 B of preamble and gap"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_headroom(), *_losslessness())


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


def _drops(*, short_by_bytes: int) -> float:
    rate_bps, cable_mm = 100 * GBPS, 100_000
    headroom_bytes = pfc_headroom_bytes(rate_bps=rate_bps, delay_ps=5 * cable_mm, full_frame_bytes=FULL_FRAME_BYTES)
    config = PacketConfig(
        pfc=PfcConfig(xoff_bytes=10 * FULL_FRAME_BYTES, headroom_bytes=headroom_bytes - short_by_bytes),
        time_limit_ns=2_000_000,
    )
    record = run_incast(31, 500_000, rate_bps, config, cable_mm=cable_mm)
    return float(record.tables["ports"]["dropped_packets"].sum())


def _unaccounted_packets() -> float:
    config = PacketConfig(loss_fraction=0.01, transport=TransportConfig(timeout_ns=50_000), time_limit_ns=100_000)
    packets = run_incast(8, 1_000_000, 400 * GBPS, config).run["packets"]
    assert packets["dropped"] > 0, "the run must lose packets to show that they are counted"
    assert packets["in_flight"] > 0, "the run must stop while packets are in flight"
    return float(packets["sent"] - packets["delivered"] - packets["in_flight"] - packets["dropped"])
