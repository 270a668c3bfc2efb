"""What-if variants: one scenario under several settings, each measured over the same number of seeds.

A variant changes keys of the scenario, fails switches or links, or both; the scenario as it is comes first. Variants
come from the scenario's own `whatif` list and from the command line.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.scenario.assignments import parse_setting
from fabrictune.scenario.overrides import override
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Scenario, WhatIf
from fabrictune.scenario.tables import estimate_columns
from fabrictune.studies.seed_sampling import Sampled, Variant, refuse_keys_without_effect, sample_variants

AS_IT_IS = "as it is"
SEPARATOR = ";"  # between the settings of one variant on the command line


def compare(
    scenario: Scenario,
    more: Sequence[WhatIf] = (),
    *,
    num_seeds: int,
    progress: Progress | None = None,
) -> RunRecord:
    """Measure the scenario as it is, then its own variants and `more`; one table, `variants`. Raises InputError."""
    started = time.perf_counter()
    what_ifs = [WhatIf(name=AS_IT_IS), *scenario.whatif, *more]
    _refuse_repeats(scenario, what_ifs)
    for variant in what_ifs:
        refuse_keys_without_effect(scenario, variant.change, where=f"what if {variant.name!r}")
    variants = [
        Variant(
            name=variant.name,
            scenario=override(scenario, variant.change, origin=f"what if {variant.name!r}"),
            fail=variant.fail,
        )
        for variant in what_ifs
    ]
    sampled = sample_variants(variants, num_seeds, progress)
    _refuse_idle(sampled, what_ifs)
    outcomes = {name: seeds.summary() for name, seeds in sampled.outcomes.items()}
    return RunRecord(
        kind="ecmp whatif",
        run={
            **describe_run(seed=scenario.seed, started=started, changes=_changes(what_ifs)),
            **describe_scenario(scenario, sampled.notes),
        },
        tables={"variants": {"variant": np.array(list(outcomes), object), **estimate_columns(list(outcomes.values()))}},
    ).with_checks(sampled.files)


def _changes(what_ifs: Sequence[WhatIf]) -> dict[str, dict[str, Any]]:
    """Return what each variant sets, and what it fails under `fail`."""
    return {
        variant.name: {**variant.change, **({"fail": list(variant.fail)} if variant.fail else {})}
        for variant in what_ifs
    }


def variants_from(settings: Sequence[str], failures: Sequence[str]) -> list[WhatIf]:
    """Return a variant for each text of settings, `KEY=VALUE; KEY=VALUE`, and each text of failures, `NAME; NAME`.

    Raises InputError.
    """
    changed = [WhatIf(name=text, change=dict(map(parse_setting, text.split(SEPARATOR)))) for text in settings]
    failed = [
        WhatIf(name=f"without {text}", fail=tuple(name.strip() for name in text.split(SEPARATOR))) for text in failures
    ]
    return changed + failed


def _refuse_idle(sampled: Sampled, what_ifs: Sequence[WhatIf]) -> None:
    """Raise InputError for each variant whose fabric, flows and paths are those of the scenario as it is."""
    idle = [
        Mistake(
            where=f"what if {variant.name!r}",
            found="the same fabric, flows and paths as the scenario has as it is",
            allowed="values that change one of these",
            next_step="leave the variant out, or set another value; what packets do is compared by `sim sweep`",
        )
        for variant in what_ifs
        if variant.change and not variant.fail and sampled.identities[variant.name] == sampled.identities[AS_IT_IS]
    ]
    if idle:
        raise InputError(*idle)


def _refuse_repeats(scenario: Scenario, what_ifs: Sequence[WhatIf]) -> None:
    names = [variant.name for variant in what_ifs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            Mistake(
                where=scenario.where("whatif"), found=f"two variants called {repeated[0]!r}", allowed="each name once"
            )
        )
