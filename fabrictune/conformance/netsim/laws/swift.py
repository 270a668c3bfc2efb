"""Swift in the engine: its target held, and thousands of flows at one port with and without windows below a packet."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Literal

import numpy as np

from fabrictune.conformance.netsim.laws.long_flows import Settled, law_with_settings, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, exactly
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import TransportConfig

_PAPER = "Kumar et al., Swift, SIGCOMM 2020"
_RATE_BPS = 50 * GBPS
_LOSSLESS = PacketConfig(ecn=EcnConfig(enabled=False))
# Senders share 12.5 MB, which is 2 ms of the port: the round trip the paper measured with full queues.
_LOSSY = PacketConfig(
    ecn=EcnConfig(enabled=False),
    pfc=PfcConfig(enabled=False, buffer_bytes=250_000),
    transport=TransportConfig(reliability="selective-repeat", timeout_ns=10_000_000),
)
_SENDERS, _FLOWS_EACH = 50, 100
# Senders, flows of each, base target in us. Figure 17 has 100 flows, whose windows are about a packet; the published
# rule adds one whole packet at an acknowledgement there.
_HELD: tuple[tuple[int, int, int, Literal["A", "C"]], ...] = (
    (2, 1, 25, "A"),
    (4, 1, 25, "A"),
    (16, 1, 50, "A"),
    (50, 2, 15, "C"),
    (50, 2, 25, "C"),
    (50, 2, 50, "C"),
    (50, 2, 70, "C"),
)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_targets(), *_incast())


def _targets() -> Iterator[Case]:
    for senders, flows_each, base_us, trust in _HELD:
        yield Case(
            name=f"netsim.swift-target-held.{senders * flows_each}-flows-{base_us}-us",
            source=f"{_PAPER}, section 3.5 and figure 17: the round trip follows the target",
            unit="of the target for the mean window",
            expected=1.0,
            low=0.85,
            high=1.15,
            run=partial(_rtt_over_target, senders, flows_each, base_us),
            trust=trust,
        )
    yield Case(
        name="netsim.swift-throughput.100-flows-25-us",
        source=f"{_PAPER}, figure 17: from 25 us on the link is full",
        unit="Gb/s",
        expected=50,
        low=48.5,
        high=50.1,
        run=lambda: _towards_target(50, 2, 25).goodput_gbps,
    )


def _rtt_over_target(senders: int, flows_each: int, base_us: int) -> float:
    from fabrictune.cc.swift import target_delay_ps

    seen = _towards_target(senders, flows_each, base_us)
    window_bits = seen.goodput_gbps * 1e3 * seen.mean_rtt_us / (senders * flows_each)
    window_packets = window_bits / (8 * _LOSSLESS.full_frame_bytes)
    params = law_with_settings("swift", _base_target(base_us)).params.view(np.recarray)[0]
    return seen.mean_rtt_us * 1e6 / target_delay_ps(params, window_packets, 2)


@cache
def _towards_target(senders: int, flows_each: int, base_us: int) -> Settled:
    return watch(
        "swift",
        _LOSSLESS,
        senders=senders,
        flows_each=flows_each,
        rate_bps=_RATE_BPS,
        settle_us=20_000,
        watch_us=40_000,
        settings=_base_target(base_us),
        start_us=(0, 500),
    )


def _base_target(base_us: int) -> tuple[tuple[str, float], ...]:
    return (("base_target_ps", base_us * 10**6),)


def _incast() -> Iterator[Case]:
    source = f"{_PAPER}, table 3 (5,000 flows to one port of 50 Gb/s)"
    picks: tuple[tuple[str, str, Callable[[Settled], float], float, float, float], ...] = (
        ("goodput", "Gb/s", lambda seen: seen.goodput_gbps, 49.5, 8.7, 0.03),
        ("lost", "%", lambda seen: 100 * seen.lost_fraction, 0.0003, 28.7, 0.15),
        ("rtt", "us", lambda seen: seen.mean_rtt_us, 110.2, 2027.4, 0.15),
    )
    for what, unit, pick, with_small, without, fraction in picks:
        for label, min_packets, expected in (("with", 0.001, with_small), ("without", 1.0, without)):
            yield Case(
                name=f"netsim.swift-incast-5000.{label}-windows-below-a-packet.{what}",
                source=f"{source}; the paper does not give buffer, timeout or parameters",
                unit=unit,
                expected=expected,
                low=expected * (1 - fraction),
                high=expected * (1 + fraction),
                run=partial(_picked, pick, min_packets),
                trust="C",
            )
    yield Case(
        name="netsim.swift-incast-5000.order",
        source=f"{source}: windows below a packet lose less and have shorter round trips",
        unit="of 2 orders that hold",
        run=_orders_held,
        **exactly(2),
    )
    yield Case(
        name="netsim.swift-incast-5000.fairness",
        source=f"{_PAPER}: 0.91 at 5,000 flows with flow scaling",
        unit="Jain's index",
        expected=0.91,
        low=0.9,
        high=1.0,
        run=lambda: _five_thousand(0.001).fairness,
    )


def _picked(pick: Callable[[Settled], float], min_packets: float) -> float:
    return pick(_five_thousand(min_packets))


def _orders_held() -> int:
    """Count the orders that do not hang on the transport.

    Goodput does: a NIC that repeats only what was lost keeps the port busy also where a third is dropped.
    """
    small, large = _five_thousand(0.001), _five_thousand(1.0)
    return (small.lost_fraction < large.lost_fraction) + (small.mean_rtt_us < large.mean_rtt_us)


@cache
def _five_thousand(min_packets: float) -> Settled:
    """Return the settled figures of flows that start one after another, within 0.1 s.

    A flow's share of the port is 0.03 packets a round trip, so that flow scaling must distinguish windows of that size.
    """
    return watch(
        "swift",
        _LOSSY,
        senders=_SENDERS,
        flows_each=_FLOWS_EACH,
        rate_bps=_RATE_BPS,
        settle_us=250_000,
        watch_us=250_000,
        settings=(("min_cwnd_packets", min_packets), ("flow_scaling_min_packets", 0.01)),
        start_us=tuple(range(0, 100_000, 100_000 // (_SENDERS * _FLOWS_EACH))),
    )
