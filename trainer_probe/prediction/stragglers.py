"""The step's distribution over where slow hosts are.

Each host is slow with the same probability. A step takes as long as with a slow host at the place where one costs most,
since all replicas wait for one another; exactly so where no pipeline has slow hosts at two of its places.

Source: MegaScale (NSDI'24), section 6.3, for slow hosts: 0.5 % of all, of which some compute 10 % slower.

Shapes: P pipeline places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A step and its probability."""

    step_s: float
    probability: float


def outcomes(step_s: float, slow_step_P: Sequence[float], num_hosts: float, slow_fraction: float) -> list[Outcome]:
    """Return the possible steps, the longest first.

    `slow_step_P` is the step with a slow host at each place, `num_hosts` the hosts of each place over all replicas.
    """
    is_slow = 1 - (1 - slow_fraction) ** num_hosts
    return list(_outcomes(step_s, slow_step_P, is_slow))


def _outcomes(step_s: float, slow_step_P: Sequence[float], is_slow: float) -> Iterator[Outcome]:
    others = 1.0
    for slow_step_s in sorted(slow_step_P, reverse=True) if is_slow else ():
        yield Outcome(step_s=slow_step_s, probability=others * is_slow)
        others *= 1 - is_slow
    yield Outcome(step_s=step_s, probability=others)


def mean_s(distribution: Sequence[Outcome]) -> float:
    """Return the expected step."""
    return sum(outcome.step_s * outcome.probability for outcome in distribution)


def quantile_s(distribution: Sequence[Outcome], share: float) -> float:
    """Return the step that is not exceeded with this probability."""
    covered = 0.0
    for outcome in reversed(distribution):
        covered += outcome.probability
        if covered >= share - 1e-12:
            return outcome.step_s
    return distribution[0].step_s
