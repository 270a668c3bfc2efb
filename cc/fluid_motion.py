"""Fluid model of DCQCN in motion: its equations, integrated from any start.

It is a witness for the fixed point that shares none of its algebra: the equations are stepped as the paper writes them,
and flows that start unequal end at the root that bisection found.

Source: Zhu et al., "ECN or Delay", CoNEXT 2016, section 3, equations of the DCQCN model; steps by Euler's method.
Left out: the delay between a mark and its effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.cc.fluid import PS_PER_SECOND, DcqcnFluid, chance_of_a_mark, counters, expiries_per_packet

_ALWAYS = 0.5  # the marking beyond Kmax, where the equations have a pole at 1


@dataclass
class FluidFlow:
    """One flow's state; rates in packets a second."""

    rate: float
    target: float
    alpha: float


@dataclass(frozen=True, kw_only=True)
class FluidState:
    """State of the model after a while."""

    rate_bps: tuple[float, ...]  # of each flow
    alpha: tuple[float, ...]
    queue_bytes: float


def integrate(fluid: DcqcnFluid, *, first_rate_bps: Sequence[float], duration_s: float, step_s: float) -> FluidState:
    """Return the state after `duration_s` of flows that start at the given rates, with alpha 1 and an empty queue."""
    packet_bits = 8 * fluid.packet_bytes
    capacity = fluid.capacity_bps / packet_bits
    flows = [FluidFlow(rate_bps / packet_bits, rate_bps / packet_bits, 1.0) for rate_bps in first_rate_bps]
    queue_packets = 0.0
    for _ in range(round(duration_s / step_s)):
        p = _mark_fraction(fluid, queue_packets * fluid.packet_bytes)
        queue_packets = max(0.0, queue_packets + (sum(flow.rate for flow in flows) - capacity) * step_s)
        for flow in flows:
            _advance(fluid, flow, p, capacity, step_s)
    return FluidState(
        rate_bps=tuple(flow.rate * packet_bits for flow in flows),
        alpha=tuple(flow.alpha for flow in flows),
        queue_bytes=queue_packets * fluid.packet_bytes,
    )


def _advance(fluid: DcqcnFluid, flow: FluidFlow, p: float, capacity: float, step_s: float) -> None:
    """Step one flow's three equations; no rate leaves the range from nothing to line rate."""
    interval_s = fluid.cnp_interval_ps / PS_PER_SECOND
    alpha_timer_s = fluid.alpha_timer_ps / PS_PER_SECOND
    additive_increase = fluid.additive_increase_bps / (8 * fluid.packet_bytes)
    cuts_per_s = chance_of_a_mark(p, interval_s * flow.rate) / interval_s
    packets_between = counters(fluid, flow.rate)
    expiries_per_s = flow.rate * sum(expiries_per_packet(p, packets) for packets in packets_between)
    increases_per_s = flow.rate * sum(
        expiries_per_packet(p, packets, after=fluid.fast_recovery_stages) for packets in packets_between
    )
    excess = flow.target - flow.rate
    alpha_slope = fluid.alpha_gain / alpha_timer_s * (chance_of_a_mark(p, alpha_timer_s * flow.rate) - flow.alpha)
    target_slope = additive_increase * increases_per_s - excess * cuts_per_s
    rate_slope = excess / 2 * expiries_per_s - flow.rate * flow.alpha / 2 * cuts_per_s
    flow.alpha += alpha_slope * step_s
    flow.target = min(flow.target + target_slope * step_s, capacity)
    flow.rate = min(max(flow.rate + rate_slope * step_s, capacity * 1e-6), capacity)


def _mark_fraction(fluid: DcqcnFluid, queue_bytes: float) -> float:
    if queue_bytes > fluid.kmax_bytes:
        return _ALWAYS
    return fluid.pmax_fraction * max(0.0, queue_bytes - fluid.kmin_bytes) / (fluid.kmax_bytes - fluid.kmin_bytes)
