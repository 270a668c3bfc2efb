"""Samples of a scenario over many seeds: its fabric once, its flows under every seed of the switches' hash.

A random placement is drawn anew for every seed, since which one a scheduler makes is as unknown as the hash.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabrictune.foundation.errors import RouteError
from fabrictune.foundation.progress import Progress, stage
from fabrictune.scenario.composition import compose_fabric
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.mixture import TRAFFIC
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.ecmp.seed_study import SeedOutcomes, measure_seeds
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.failures import failed_ports
from fabrictune.topology.network import QueuePairs

RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A scenario, its settings already changed, and what has failed in it."""

    name: str
    scenario: Scenario
    fail: tuple[str, ...] = ()


def sample_variants(
    variants: Sequence[Variant], num_seeds: int, progress: Progress | None = None
) -> dict[str, SeedOutcomes]:
    """Return what collisions cost in each variant under the same number of seeds, by name; raises InputError."""
    outcomes = {}
    for number, variant in enumerate(variants):
        share = stage(progress, number, len(variants))
        outcomes[variant.name] = sample_variant(variant, num_seeds, share)
    return outcomes


def sample_variant(variant: Variant, num_seeds: int, progress: Progress | None = None) -> SeedOutcomes:
    """Return what collisions cost under each of the seeds from the scenario's routing seed on; raises InputError."""
    try:
        return _sample(variant, num_seeds, progress)
    except RouteError as error:
        if not variant.fail:
            raise
        first = error.mistakes[0]
        step = "fail only what leaves every NIC another way"
        raise RouteError(replace(first, where=f"{variant.name}: {first.where}", next_step=step)) from None


def _sample(variant: Variant, num_seeds: int, progress: Progress | None) -> SeedOutcomes:
    scenario = variant.scenario
    fabric = compose_fabric(scenario)
    is_failed_P = failed_ports(fabric, variant.fail, where=f"{variant.name}: fail") if variant.fail else None
    first = scenario.routing.seed
    seeds = range(first, first + num_seeds)
    spec = scenario.traffic.spec
    is_redrawn = isinstance(spec, JobSpec) and spec.placement == RANDOM
    parts = [
        measure_seeds(
            fabric,
            _queue_pairs(scenario, fabric, turn),
            scenario.routing,
            seeds[turn : turn + 1] if is_redrawn else seeds,
            is_failed_P=is_failed_P,
            progress=stage(progress, turn, num_seeds) if is_redrawn else progress,
        )
        for turn in range(num_seeds if is_redrawn else 1)
    ]
    return SeedOutcomes.joined(parts)


def _queue_pairs(scenario: Scenario, fabric: Fabric, turn: int) -> QueuePairs:
    """Return the scenario's queue pairs, a random placement's as drawn for this turn."""
    spec = scenario.traffic.spec
    if isinstance(spec, JobSpec):
        spec = replace(spec, placement_seed=spec.placement_seed + turn)
    return queue_pairs_of(scenario, fabric, spec)


def queue_pairs_of(scenario: Scenario, fabric: Fabric, spec: Any) -> QueuePairs:
    """Return the queue pairs of the scenario's traffic as another spec of the same kind has it; raises InputError."""
    with placed(scenario, "traffic", spec):
        queue_pairs, _ = TRAFFIC[scenario.traffic.name].make(spec, fabric, scenario.seed)
    return queue_pairs
