"""Closed form of Barre's stable queue with N equal flows.

A round of T lasts a round trip, or for slow flows as long as 8 KB take. A flow of r packets a second hears no CNP for a
round with chance x = (1 - p)**(r T). Between two CNPs there are then x / (1 - x) rounds that end, x**(K+1) / (1 - x) of
them beyond the K-th. At rest what they add is what one CNP takes:

    (alpha x + (A - alpha) x**(K+1)) / (1 - x) = (1 - beta) C / N

The left side rises with x, so there is one root; p and by RED's slope the queue follow from it.

Source: worked out here from the law's rules (`cc/barre.py`), as the CoNEXT 2016 model does for DCQCN; the paper gives
its own stable queue for steps and cuts of one size.
Left out: the delay of feedback; the spacing of CNPs, which hardly matters while marks are rarer than that.
"""

import math
from dataclasses import dataclass

from fabrictune.cc import barre

PS_PER_SECOND = 1e12
_DEFAULTS = {parameter.name: parameter.default for parameter in barre.PARAMETERS}


@dataclass(frozen=True, kw_only=True)
class BarreFluid:
    """N flows under Barre through one port of `capacity_bps` with RED marking."""

    num_flows: int
    capacity_bps: float
    packet_bytes: int
    rtt_ps: int
    kmin_bytes: float
    kmax_bytes: float
    pmax_fraction: float
    additive_increase_bps: float = _DEFAULTS["additive_increase_bps"]
    fast_increase_fraction: float = _DEFAULTS["fast_increase_fraction"]  # of the capacity, which is the NICs' line rate
    fast_increase_rounds: float = _DEFAULTS["fast_increase_rounds"]
    kept_fraction: float = _DEFAULTS["kept_fraction"]
    lock_bytes: float = _DEFAULTS["lock_bytes"]


def stable_mark_fraction(fluid: BarreFluid) -> float:
    """Return p at rest, by bisection on the chance of a round without CNPs."""
    taken_bps = (1 - fluid.kept_fraction) * fluid.capacity_bps / fluid.num_flows
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if _added_bps(fluid, middle) < taken_bps * (1 - middle):
            low = middle
        else:
            high = middle
    return -math.expm1(math.log(high) / _packets_per_round(fluid))


def stable_queue_bytes(fluid: BarreFluid) -> float | None:
    """Return the queue at rest; None if it would take more marks than RED gives, so that it swings about Kmax."""
    p = stable_mark_fraction(fluid)
    if p > fluid.pmax_fraction:
        return None
    return fluid.kmin_bytes + p / fluid.pmax_fraction * (fluid.kmax_bytes - fluid.kmin_bytes)


def _added_bps(fluid: BarreFluid, x: float) -> float:
    """Return (1 - x) times what the rounds between two CNPs add."""
    beyond_bps = fluid.fast_increase_fraction * fluid.capacity_bps - fluid.additive_increase_bps
    return float(fluid.additive_increase_bps * x + beyond_bps * x ** (fluid.fast_increase_rounds + 1))


def _packets_per_round(fluid: BarreFluid) -> float:
    rate_bps = fluid.capacity_bps / fluid.num_flows
    round_s = max(fluid.rtt_ps / PS_PER_SECOND, 8 * fluid.lock_bytes / rate_bps)
    return rate_bps * round_s / (8 * fluid.packet_bytes)
