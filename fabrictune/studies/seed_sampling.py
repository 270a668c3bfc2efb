"""Samples of a scenario over many seeds: its fabric once, its flows under every seed of the switches' hash.

A random placement is drawn anew for every seed, since which one a scheduler makes is as unknown as the hash.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.errors import InputError, Mistake, RouteError
from fabrictune.foundation.progress import Progress, stage
from fabrictune.foundation.settings.binding import settings_of
from fabrictune.foundation.settings.quantities import key_of
from fabrictune.netsim.workloads.table import GeneratedTraffic
from fabrictune.scenario.composition import compose_fabric, compose_traffic, notes_of_scenario
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.ecmp.seed_study import SeedOutcomes, measure_seeds
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.failures import failed_ports
from fabrictune.topology.network import QueuePairs

RANDOM = "random"
WITH_EFFECT = ("fabric", "routing", "traffic", "source_ports", "seed")
WITHOUT_EFFECT = frozenset(key_of(field.name) for field, _ in settings_of(Scenario)) - set(WITH_EFFECT)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A scenario, its settings already changed, and what has failed in it."""

    name: str
    scenario: Scenario
    fail: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What collisions cost in each variant, by name, and what its fabric and traffic assume or contradict.

    `identities` are equal for two variants only if their fabrics, flows, paths and failures are.
    """

    identities: Mapping[str, str]
    outcomes: Mapping[str, SeedOutcomes]
    notes: tuple[str, ...]
    files: CheckReport  # of the fabrics


def sample_variants(variants: Sequence[Variant], num_seeds: int, progress: Progress | None = None) -> Sampled:
    """Return what collisions cost in each variant under the same number of seeds; raises InputError."""
    samples = [
        sample_variant(variant, num_seeds, stage(progress, number, len(variants)))
        for number, variant in enumerate(variants)
    ]
    return Sampled(
        identities={variant.name: sample.identity for variant, sample in zip(variants, samples, strict=True)},
        outcomes={variant.name: sample.outcomes for variant, sample in zip(variants, samples, strict=True)},
        notes=tuple(dict.fromkeys(note for sample in samples for note in sample.notes)),
        files=CheckReport(
            checks=tuple(dict.fromkeys(check for sample in samples for check in sample.files.checks)),
            findings=tuple(dict.fromkeys(finding for sample in samples for finding in sample.files.findings)),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One variant under a number of seeds.

    `identity` is equal for two variants only if their fabrics, flows, paths and failures are.
    """

    identity: str
    outcomes: SeedOutcomes
    notes: tuple[str, ...]
    files: CheckReport  # of the fabrics


def sample_variant(variant: Variant, num_seeds: int, progress: Progress | None = None) -> Sample:
    """Return what collisions cost under each of the seeds from the scenario's routing seed on; raises InputError."""
    try:
        return _sample(variant, num_seeds, progress)
    except RouteError as error:
        if not variant.fail:
            raise
        first = error.mistakes[0]
        step = "fail only what leaves every NIC another way"
        raise RouteError(replace(first, where=f"{variant.name}: {first.where}", next_step=step)) from None


def _sample(variant: Variant, num_seeds: int, progress: Progress | None) -> Sample:
    scenario = variant.scenario
    fabric = compose_fabric(scenario)
    is_failed_P = failed_ports(fabric, variant.fail, where=f"{variant.name}: fail") if variant.fail else None
    first = scenario.routing.seed
    seeds = range(first, first + num_seeds)
    spec = scenario.traffic.spec
    is_redrawn = isinstance(spec, JobSpec) and spec.placement == RANDOM
    identity = hashlib.blake2b(repr((variant.fail, replace(scenario.routing, seed=0), seeds)).encode())
    _add(identity, fabric)
    parts, notes = [], dict.fromkeys((*notes_of_scenario(scenario), *fabric.notes))
    for turn in range(num_seeds if is_redrawn else 1):
        queue_pairs, traffic = _generated(scenario, fabric, turn)
        _add(identity, queue_pairs)
        notes |= dict.fromkeys(traffic.notes)
        outcomes = measure_seeds(
            fabric,
            queue_pairs,
            scenario.routing,
            seeds[turn : turn + 1] if is_redrawn else seeds,
            is_failed_P=is_failed_P,
            progress=stage(progress, turn, num_seeds) if is_redrawn else progress,
        )
        parts.append(outcomes)
    return Sample(
        identity=identity.hexdigest(),
        outcomes=SeedOutcomes.joined(parts),
        notes=tuple(notes),
        files=fabric.check_files(),
    )


def _add(identity: Any, table: Fabric | QueuePairs) -> None:
    """Add every column of numbers to a digest."""
    for name, column in vars(table).items():
        if isinstance(column, np.ndarray):
            identity.update(name.encode() + np.ascontiguousarray(column).tobytes())


def refuse_keys_without_effect(scenario: Scenario, keys: Iterable[str], *, where: str) -> None:
    """Raise InputError naming the keys that no collision depends on: laws, engines, faults and what judges a run."""
    idle = [key for key in keys if re.split(r"[.\[]", key)[0] in WITHOUT_EFFECT]
    if idle:
        allowed = f"keys of {', '.join(WITH_EFFECT)}"
        next_step = "compare them in the engine: `fabrictune sim sweep`"
        found = "has no effect on collisions, which no engine and no law takes part in"
        raise InputError(
            *(Mistake(where=f"{where}: {key}", found=found, allowed=allowed, next_step=next_step) for key in idle)
        )


def _generated(scenario: Scenario, fabric: Fabric, turn: int) -> GeneratedTraffic:
    """Return the scenario's traffic, a random placement's as drawn for this turn."""
    spec = scenario.traffic.spec
    if isinstance(spec, JobSpec):
        spec = replace(spec, placement_seed=spec.placement_seed + turn)
    return compose_traffic(scenario, fabric, spec)[0]
