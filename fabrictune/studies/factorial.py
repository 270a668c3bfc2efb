"""Factorial experiment on a scenario: all combinations of its factors, with the effect of each set of them.

Two tables come of it: `designs`, one row for each combination, and `effects`, one row for each set of factors and each
measured figure.
"""

import time
from collections.abc import Mapping, Sequence

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.scenario.overrides import override
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Changes, Scenario
from fabrictune.scenario.tables import estimate_columns
from fabrictune.studies.seed_sampling import Variant, refuse_keys_without_effect, sample_variants
from fabrictune.topology.ecmp.factorial import Levels, designs, effects
from fabrictune.topology.ecmp.seed_study import SeedOutcomes

MAX_FACTORS = 6
NONE_OF_THEM = "none"
JOIN = " + "
TIMES = " x "


def run_factorial(scenario: Scenario, *, num_seeds: int, progress: Progress | None = None) -> RunRecord:
    """Measure all combinations of the scenario's factors; raises InputError."""
    started = time.perf_counter()
    _check(scenario)
    factors = scenario.factors
    for factor in factors:
        refuse_keys_without_effect(scenario, factor.low | factor.high, where=f"factor {factor.name!r}")
    changes = {_name(scenario, levels): _changes(scenario, levels) for levels in designs(len(factors))}
    variants = [
        Variant(name=name, scenario=override(scenario, own, origin=f"design {name!r}")) for name, own in changes.items()
    ]
    sampled = sample_variants(variants, num_seeds, progress)
    outcomes = {name: seeds.summary() for name, seeds in sampled.outcomes.items()}
    names = [factor.name for factor in factors]
    return RunRecord(
        kind="ecmp factorial",
        run={
            **describe_run(seed=scenario.seed, started=started, factors=names, num_seeds=num_seeds, changes=changes),
            **describe_scenario(scenario, sampled.notes),
        },
        tables={
            "designs": {"design": np.array(list(outcomes), object), **estimate_columns(list(outcomes.values()))},
            "effects": _effects_table(sampled.outcomes, names),
        },
    ).with_checks(sampled.files)


def _name(scenario: Scenario, levels: Levels) -> str:
    """Return the name of a combination, by the factors that are high."""
    high = [factor.name for factor, is_high in zip(scenario.factors, levels, strict=True) if is_high]
    return JOIN.join(high) or NONE_OF_THEM


def _changes(scenario: Scenario, levels: Levels) -> Changes:
    """Return what a combination sets, every factor at its level."""
    changes: Changes = {}
    for factor, is_high in zip(scenario.factors, levels, strict=True):
        changes |= factor.high if is_high else factor.low
    return changes


def _effects_table(sampled: Mapping[str, SeedOutcomes], names: Sequence[str]) -> Columns:
    rows = []
    responses = [outcomes.responses() for outcomes in sampled.values()]
    for metric in responses[0]:
        for factors, effect in effects(np.stack([response[metric] for response in responses])):
            name = TIMES.join(names[factor] for factor in factors)
            row = {"effect": name, "metric": metric, "value": effect.value, "low": effect.low, "high": effect.high}
            rows.append(row)
    return to_columns("effects", rows)


def _check(scenario: Scenario) -> None:
    names = [factor.name for factor in scenario.factors]
    if not 1 <= len(names) <= MAX_FACTORS or len(set(names)) < len(names):
        raise InputError(
            Mistake(
                where=scenario.where("factors"),
                found=f"factors {', '.join(names)}" if names else "no factors",
                allowed=f"1 to {MAX_FACTORS} factors of different names",
                next_step="list them under `factors`, each with name, low and high",
            )
        )
