"""TIMELY in the engine: many points of rest by its slope alone, one with the patch."""

from functools import cache, partial

from fabrictune.conformance.netsim.laws.long_flows import Settled, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, around
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig

_PAPER = "Zhu et al., ECN or Delay, CoNEXT 2016"
_RATE_BPS = 10 * GBPS
_CONFIG = PacketConfig(mtu_bytes=1000, ecn=EcnConfig(enabled=False))
_STEP_BPS, _BETA, _LOW_DELAY_US = 10e6, 0.008, 50
_TOGETHER, _LATE = (0,), (0, 10_000)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        Case(
            name="netsim.timely-two-flows.together",
            source=f"{_PAPER}, on TIMELY: no fixed point of its own; flows that start alike stay alike",
            unit="Jain's index",
            expected=1.0,
            low=0.98,
            high=1.0,
            run=lambda: _settled(0, 2, _TOGETHER).fairness,
            trust="B",
        ),
        Case(
            name="netsim.timely-two-flows.one-late",
            source=f"{_PAPER}, on TIMELY: flows that start 10 ms apart stay apart",
            unit="Jain's index",
            expected=0.5,
            low=0.5,
            high=0.9,
            run=lambda: _settled(0, 2, _LATE).fairness,
            trust="B",
        ),
        Case(
            name="netsim.timely-patched.one-late",
            source=f"{_PAPER}, on patched TIMELY: one fixed point, and it is fair, whenever flows start",
            unit="Jain's index",
            expected=1.0,
            low=0.99,
            high=1.0,
            run=lambda: _settled(1, 2, _LATE).fairness,
        ),
        *(_patched_delay(num_flows) for num_flows in (2, 4, 8)),
    )


def _patched_delay(num_flows: int) -> Case:
    return Case(
        name=f"netsim.timely-patched.delay-{num_flows}-flows",
        source=f"{_PAPER}, on patched TIMELY: the fixed point's delay is T_low (1 + N delta / (beta C))",
        unit="us",
        run=partial(_patched_rtt_us, num_flows),
        **around(_LOW_DELAY_US * (1 + num_flows * _STEP_BPS / (_BETA * _RATE_BPS)), 0.02),
    )


def _patched_rtt_us(num_flows: int) -> float:
    return _settled(1, num_flows, _LATE).mean_rtt_us


@cache
def _settled(is_patched: int, num_flows: int, start_us: tuple[int, ...]) -> Settled:
    return watch(
        "timely",
        _CONFIG,
        senders=num_flows,
        rate_bps=_RATE_BPS,
        settle_us=200_000,
        watch_us=100_000,
        settings=(("is_patched", is_patched), ("first_rate_fraction", 1 / num_flows)),
        start_us=start_us,
    )
