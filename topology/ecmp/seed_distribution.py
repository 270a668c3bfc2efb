"""Cost of collisions with unknown hash seeds: exact where there is a closed form.

For given flows on a fabric: the chance that any link is oversubscribed, the worst link's load on
average and in the worst of a hundred fabrics, the share of the traffic that gets through, and what the unluckiest flow
keeps. Where every flow makes one choice among the same links the answer is exact; elsewhere the flows are routed under
many seeds and each figure has its 95 % interval. The seed of a tier's own role counts as known, and stays.

Shapes: S seeds.
"""

import math
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.quantiles import NORMAL_95
from fabrictune.topology.ecmp.balls_into_bins import UniformHashing
from fabrictune.topology.ecmp.estimates import Estimate, exactly_known
from fabrictune.topology.ecmp.seed_study import measure_seeds
from fabrictune.topology.ecmp.single_choice import SingleChoice, find_single_choice
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import QueuePairs


@dataclass(frozen=True, kw_only=True)
class SeedDistribution:
    """Expected figures of a fabric whose seeds are not known."""

    num_seeds: int  # tried; 0 where the figures are exact
    overload_probability: Estimate  # that any link is oversubscribed
    worst_load_fraction: Estimate  # demand over rate of the worst link, on average
    worst_load_fraction_p99: Estimate  # what 99 of 100 fabrics stay at or below
    throughput_fraction: Estimate  # carried, of the offered load
    slowest_fraction: Estimate  # of what the unluckiest flow asks for

    @property
    def is_exact(self) -> bool:
        """Whether the figures follow from a closed form."""
        return self.num_seeds == 0


def distribute_over_seeds(
    fabric: Fabric,
    queue_pairs: QueuePairs,
    hash_spec: HashSpec,
    *,
    num_seeds: int,
    progress: Progress | None = None,
) -> SeedDistribution:
    """Return the distribution for queue pairs that are all active at once; raises RouteError.

    The seeds tried, where any are, are `hash_spec.seed` and those that follow it.
    """
    assert num_seeds >= 2, "one seed says nothing of the others"
    if choice := find_single_choice(fabric, queue_pairs, hash_spec):
        return _exact(choice)
    seeds = range(hash_spec.seed, hash_spec.seed + num_seeds)
    outcomes = measure_seeds(fabric, queue_pairs, hash_spec, seeds, progress=progress)
    summary = outcomes.summary()
    return SeedDistribution(
        num_seeds=num_seeds,
        overload_probability=summary.overload_probability,
        worst_load_fraction=summary.worst_load_fraction,
        worst_load_fraction_p99=_estimate_quantile(outcomes.worst_load_fraction_S, 0.99),
        throughput_fraction=summary.throughput_fraction,
        slowest_fraction=summary.slowest_fraction,
    )


def _exact(choice: SingleChoice) -> SeedDistribution:
    hashing = UniformHashing(
        num_flows=choice.num_flows,
        num_links=choice.num_links,
        capacity_flows=choice.link_rate_bps / choice.demand_bps,
    )
    load_of_count = np.arange(choice.num_flows + 1) / hashing.capacity_flows
    worst_of_count = np.maximum(load_of_count, choice.fixed_load_fraction)
    return SeedDistribution(
        num_seeds=0,
        overload_probability=exactly_known(1 - hashing.no_overload_probability),
        worst_load_fraction=exactly_known(float(hashing.max_load_probability @ worst_of_count)),
        worst_load_fraction_p99=exactly_known(float(worst_of_count[hashing.max_load_quantile(0.99)])),
        throughput_fraction=exactly_known(hashing.throughput_fraction),
        slowest_fraction=exactly_known(hashing.slowest_fraction),
    )


def _estimate_quantile(value_S: FloatArray, probability: float) -> Estimate:
    """Return a quantile of a sample, with the order statistics between which the true one lies 19 times of 20.

    The number of values below the true quantile is binomial, here taken as normal; too few values leave the upper end
    open.
    """
    ordered_S, num_values = np.sort(value_S), len(value_S)
    margin = NORMAL_95 * math.sqrt(num_values * probability * (1 - probability))
    low = max(0, math.floor(num_values * probability - margin) - 1)
    high = math.ceil(num_values * probability + margin)
    return Estimate(
        value=percentile(ordered_S, probability),
        low=float(ordered_S[low]),
        high=float(ordered_S[high]) if high < num_values else math.inf,
    )
