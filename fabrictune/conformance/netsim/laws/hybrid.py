"""The hybrid law in the engine: what its design claims, each signal by itself and both together."""

from functools import cache, partial

import numpy as np

from fabrictune.conformance.netsim.laws.long_flows import Settled, law_with_settings, watch
from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case, exactly
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig

_DESIGN = "docs/decisions/0032-hybrid-law.md (a design of our own; MegaScale publishes no equation)"
_RATE_BPS = 400 * GBPS
_MARKING, _SILENT = PacketConfig(), PacketConfig(ecn=EcnConfig(enabled=False))
_KMIN_BYTES, _KMAX_BYTES, _ = _MARKING.ecn.curve
_NO_TARGET = (("queue_target_ps", 10**9),)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(_target_held(num_flows) for num_flows in (2, 16, 56)),
        *(_both(num_flows) for num_flows in (2, 16, 56)),
        Case(
            name="netsim.hybrid-ecn-alone.queue",
            source=f"{_DESIGN}: without a reachable target, marks hold the queue on their slope",
            unit="KB",
            expected=_KMIN_BYTES / 1e3,
            low=_KMIN_BYTES / 2e3,
            high=_KMAX_BYTES / 1e3,
            run=lambda: _settled(_MARKING, 16, _NO_TARGET).mean_queue_bytes / 1e3,
        ),
        Case(
            name="netsim.hybrid-pauses",
            source=f"{_DESIGN}: what a 56:1 incast has in flight is bounded from the start",
            unit="pauses",
            run=lambda: _settled(_MARKING, 56, ()).num_pauses,
            **exactly(0),
        ),
    )


def _target_held(num_flows: int) -> Case:
    return Case(
        name=f"netsim.hybrid-target-held.{num_flows}-flows",
        source=f"{_DESIGN}: without marks the round trip follows the target",
        unit="of the target for the mean window",
        expected=1.0,
        low=0.85,
        high=1.15,
        run=partial(_rtt_over_target, num_flows),
    )


def _both(num_flows: int) -> Case:
    return Case(
        name=f"netsim.hybrid-fairness.{num_flows}-flows",
        source=f"{_DESIGN}: a full link, equally shared, with both signals",
        unit="Jain's index times the share of the link",
        expected=1.0,
        low=0.95,
        high=1.001,
        run=partial(_fair_share, num_flows),
    )


def _rtt_over_target(num_flows: int) -> float:
    from fabrictune.cc.swift import flow_scaling_ps

    seen = _settled(_SILENT, num_flows, ())
    window_packets = seen.goodput_gbps * 1e3 * seen.mean_rtt_us / num_flows / (8 * _SILENT.full_frame_bytes)
    params = law_with_settings("hybrid", ()).params.view(np.recarray)[0]
    target_ps = _unloaded_rtt_ps() + int(params.queue_target_ps) + flow_scaling_ps(params, window_packets)
    return seen.mean_rtt_us * 1e6 / target_ps


def _unloaded_rtt_ps() -> float:
    """Return what a flow alone and slow sees."""
    return _settled(_SILENT, 1, (("queue_target_ps", 0), ("flow_scaling_range_ps", 0))).mean_rtt_us * 1e6


def _fair_share(num_flows: int) -> float:
    seen = _settled(_MARKING, num_flows, ())
    return seen.fairness * seen.goodput_gbps * 1e9 / _RATE_BPS


@cache
def _settled(config: PacketConfig, num_flows: int, settings: tuple[tuple[str, float], ...]) -> Settled:
    return watch(
        "hybrid",
        config,
        senders=num_flows,
        rate_bps=_RATE_BPS,
        settle_us=5_000,
        watch_us=5_000,
        settings=settings,
        start_us=(0,),
    )
