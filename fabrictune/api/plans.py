"""Plans: a training job without the cluster, and placements and source ports with fewer collisions."""

import time
from collections.abc import Mapping
from typing import Any

from fabrictune.api.scenarios import as_scenario
from fabrictune.api.studies import Overrides, ScenarioOrFile
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord


def plan_job(
    recipe: str, overrides: Mapping[str, Any] | None = None, *, profile: str = "a100", **hardware: Any
) -> RunRecord:
    """Return what a training job asks of every rank and link, holds in memory and takes at best, without running it.

    `recipe` is a name ("175b", "tiny") or a YAML file, `profile` that of hardware ("a100", "h100"). `hardware` are
    fields of HardwareSpec that differ from it (`nic_rate_bps=400e9, gpus_per_host=8`). Needs the extra `train`.
    Raises InputError, UnavailableError.
    """
    from fabrictune.foundation.extras import require_extra

    require_extra("torch", extra="train", where="plan_job")
    from fabrictune.hardware.files import find_profile
    from fabrictune.trainer_probe.planning.hardware import HardwareSpec
    from fabrictune.trainer_probe.planning.plan import make_plan
    from fabrictune.trainer_probe.planning.record import make_record
    from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

    started = time.perf_counter()
    checked = load_recipe(find_recipe(recipe), dict(overrides or {}), origin="overrides")
    return make_record(
        make_plan(checked, HardwareSpec.of_profile(find_profile(profile, where="profile"), **hardware)), started=started
    )


def plan_placement(
    scenario: ScenarioOrFile,
    overrides: Overrides | None = None,
    *,
    num_seeds: int = 100,
    keep_placement: bool = False,
    progress: Progress | None = None,
) -> RunRecord:
    """Return a rank placement, queue pairs and UDP source ports with fewer ECMP collisions.

    Tables `steps`, `source_ports` and, for a job, `placement`. With `keep_placement` ranks stay on their hosts. Raises
    InputError.
    """
    from fabrictune.studies.collision_plan import plan_scenario

    return plan_scenario(
        as_scenario(scenario, overrides), num_seeds=num_seeds, keeps_placement=keep_placement, progress=progress
    )
