"""Fluid model of DCQCN: the equilibrium of N equal flows through one queue.

At the fixed point every flow has its share C/N, cuts and increases balance, and the queue is where RED marks just
as often as that takes. Two conditions on the distance between target and current rate give one equation in the marking
probability p, which has one root.

Rates here are in packets a second, since marks fall on packets.

Source: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016,
section 3 (equations of the model, its fixed point). The paper's closed form for p* is 16 to 37 % too high where we use
it; this is the numeric root.
Left out: the delay of feedback, which moves no fixed point but decides whether flows stay there; hyper increase.
"""

import math
from dataclasses import dataclass

PS_PER_SECOND = 1e12
_LARGEST_EXPONENT = 700  # exp(709.8) is the largest float


@dataclass(frozen=True, kw_only=True)
class DcqcnFluid:
    """N flows under DCQCN through one port of `capacity_bps` with RED marking."""

    num_flows: int
    capacity_bps: float
    packet_bytes: int
    alpha_timer_ps: int
    cnp_interval_ps: int
    rate_timer_ps: int
    byte_counter_bytes: int | None  # None: no byte counter
    fast_recovery_stages: int
    additive_increase_bps: float
    kmin_bytes: int
    kmax_bytes: int
    pmax_fraction: float
    alpha_gain: float = 1 / 256  # moves no fixed point, only the way there


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """Equilibrium of the flows."""

    mark_fraction: float  # p*
    alpha: float
    rate_bps: float  # of each flow
    target_excess_bps: float  # target rate less current rate
    queue_bytes: float | None  # None: p* is above Pmax, so the queue swings about Kmax instead


def solve_fixed_point(fluid: DcqcnFluid) -> FixedPoint:
    """Return the fixed point by bisection on log p: below the root increases prevail, above it cuts."""
    low, high = math.log(1e-12), math.log(0.5)
    for _ in range(80):
        middle = (low + high) / 2
        if _imbalance(fluid, math.exp(middle)) > 0:
            low = middle
        else:
            high = middle
    return _fixed_point(fluid, math.exp(high))


def chance_of_a_mark(p: float, packets: float) -> float:
    """Return the chance 1 - (1 - p)**packets that one of so many packets is marked."""
    return -math.expm1(packets * math.log1p(-p))


def expiries_per_packet(p: float, packets: float, *, after: int = 0) -> float:
    """Return how often a counter of so many packets, which a mark resets, expires per packet; without marks 1/packets.

    `after` counts only expiries beyond so many since the last mark: those that add to the target rate.
    """
    exponent = -packets * math.log1p(-p)
    if exponent > _LARGEST_EXPONENT:
        return 0.0
    return math.exp(-after * exponent) * (p / math.expm1(exponent) if p > 0 else 1 / packets)


def counters(fluid: DcqcnFluid, packet_rate: float) -> list[float]:
    """Return how many packets pass between two expiries of the rate timer and, if there is one, the byte counter."""
    timer = fluid.rate_timer_ps / PS_PER_SECOND * packet_rate
    return [timer] if fluid.byte_counter_bytes is None else [timer, fluid.byte_counter_bytes / fluid.packet_bytes]


def _fixed_point(fluid: DcqcnFluid, p: float) -> FixedPoint:
    is_on_slope = p <= fluid.pmax_fraction
    slope = (fluid.kmax_bytes - fluid.kmin_bytes) / fluid.pmax_fraction
    return FixedPoint(
        mark_fraction=p,
        alpha=_alpha(fluid, p),
        rate_bps=fluid.capacity_bps / fluid.num_flows,
        target_excess_bps=_excess_sustained_by_increase(fluid, p),
        queue_bytes=fluid.kmin_bytes + p * slope if is_on_slope else None,
    )


def _imbalance(fluid: DcqcnFluid, p: float) -> float:
    """Return by how much increases hold the target above the rate more than cuts would, in bits a second."""
    return _excess_sustained_by_increase(fluid, p) - _excess_needed_against_cuts(fluid, p)


def _excess_sustained_by_increase(fluid: DcqcnFluid, p: float) -> float:
    """Return R_T - R_C where R_T rests: additive increase against its reset to R_C at every cut."""
    rate, interval_s = _packet_rate(fluid), fluid.cnp_interval_ps / PS_PER_SECOND
    increases = sum(
        expiries_per_packet(p, packets, after=fluid.fast_recovery_stages) for packets in counters(fluid, rate)
    )
    return interval_s * fluid.additive_increase_bps * rate * increases / chance_of_a_mark(p, interval_s * rate)


def _excess_needed_against_cuts(fluid: DcqcnFluid, p: float) -> float:
    """Return R_T - R_C where R_C rests: averaging with the target against cuts by alpha / 2."""
    rate, interval_s = _packet_rate(fluid), fluid.cnp_interval_ps / PS_PER_SECOND
    expiries = sum(expiries_per_packet(p, packets) for packets in counters(fluid, rate))
    cuts = chance_of_a_mark(p, interval_s * rate)
    return _alpha(fluid, p) * cuts / (interval_s * expiries) * 8 * fluid.packet_bytes


def _alpha(fluid: DcqcnFluid, p: float) -> float:
    return chance_of_a_mark(p, fluid.alpha_timer_ps / PS_PER_SECOND * _packet_rate(fluid))


def _packet_rate(fluid: DcqcnFluid) -> float:
    return fluid.capacity_bps / fluid.num_flows / (8 * fluid.packet_bytes)
