"""Max-min fair rates in exact fractions: the definition of `topology/fairness.py`, one stop of the water at a time."""

from collections.abc import Sequence
from fractions import Fraction

Path = Sequence[int]  # the ports of one flow


def exact_max_min_rates(
    paths: Sequence[Path],
    capacities_bps: Sequence[int],
    demands_bps: Sequence[int | None],
    weights: Sequence[int],
) -> list[Fraction]:
    """Return the rate of each flow; a demand of None is none. Every flow has a port or a demand."""
    rates: dict[int, Fraction] = {}
    while len(rates) < len(paths):
        rising = [flow for flow in range(len(paths)) if flow not in rates]
        limits = {flow: _limit(flow, rising, rates, paths, capacities_bps, demands_bps, weights) for flow in rising}
        level = min(limits.values())
        rates.update({flow: weights[flow] * level for flow in rising if limits[flow] == level})
    return [rates[flow] for flow in range(len(paths))]


def _limit(
    flow: int,
    rising: Sequence[int],
    rates: dict[int, Fraction],
    paths: Sequence[Path],
    capacities_bps: Sequence[int],
    demands_bps: Sequence[int | None],
    weights: Sequence[int],
) -> Fraction:
    """Return the level at which a flow must stop if no other stops before it."""
    demand = demands_bps[flow]
    limits = [] if demand is None else [Fraction(demand, weights[flow])]
    for port in paths[flow]:
        left = capacities_bps[port] - sum(rates[other] * paths[other].count(port) for other in rates)
        limits.append(left / Fraction(sum(weights[other] * paths[other].count(port) for other in rising)))
    return min(limits)
