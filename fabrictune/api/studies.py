"""Studies of a scenario: its ECMP collisions, a simulation, its variants, a sweep. Each returns a record."""

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from fabrictune.api.scenarios import as_scenario
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.site_file import read_site_file
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.schema import Scenario, WhatIf
from fabrictune.studies import collisions, link_report, simulation, whatif
from fabrictune.topology.ecmp.link_report import LinkExplanation

ScenarioOrFile = Scenario | str | PathLike[str]
Overrides = Mapping[str, Any]


def analyze(
    scenario: ScenarioOrFile,
    overrides: Overrides | None = None,
    *,
    num_seeds: int | None = None,
    rules: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the offered load and max-min fair share of every link and flow under ECMP, without simulation.

    Tables `loads`, `collisions`, `throughput`; with `num_seeds` also `seeds`, the mean over that many hash seeds.
    `rules` is a site file with severities and thresholds of findings. Raises InputError.
    """
    site = _site(rules)
    record = collisions.analyze_scenario(as_scenario(scenario, overrides), progress, num_seeds=num_seeds, rules=site)
    return site.apply_to(record)


def explain_link(
    scenario: ScenarioOrFile, link: str | None = None, overrides: Overrides | None = None
) -> LinkExplanation:
    """Return which flows cross a link and why: "tor0-5:up0", by default the one with the highest offered load.

    Raises InputError.
    """
    return link_report.explain_scenario_link(as_scenario(scenario, overrides), link)


def simulate(
    scenario: ScenarioOrFile,
    overrides: Overrides | None = None,
    *,
    trust_code: bool = False,
    rules: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> RunRecord:
    """Run a scenario in its engine and return the record; broken expectations are findings in it.

    Python files that the scenario names run only with `trust_code`. `rules` is a site file with severities and
    thresholds of findings. Ctrl-C ends the run with what there is (`record.run["outcome"]` is "interrupted"). Raises
    InputError, LawError.
    """
    site = _site(rules)
    checked = as_scenario(scenario, overrides, trust_code=trust_code)
    return site.apply_to(simulation.simulate(checked, rules=site, progress=progress))


def compare_variants(
    scenario: ScenarioOrFile,
    variants: Mapping[str, Overrides] | None = None,
    *,
    num_seeds: int = 100,
    progress: Progress | None = None,
) -> RunRecord:
    """Return what ECMP collisions cost in a scenario and in its variants, over the same hash seeds: table `variants`.

    `variants` maps a name to overrides, beside those that the scenario lists itself. Raises InputError.
    """
    more = [WhatIf(name=name, change=dict(change)) for name, change in (variants or {}).items()]
    return whatif.compare(as_scenario(scenario, None), more, num_seeds=num_seeds, progress=progress)


def sweep(
    path: str | PathLike[str],
    out: str | PathLike[str],
    *,
    num_workers: int | None = None,
    trust_code: bool = False,
    progress: Progress | None = None,
) -> RunRecord:
    """Run the sweep in a YAML file on threads and return its record: tables `points`, `objectives`, `sensitivity`.

    Every finished run is kept in the folder `out`; the same call resumes a sweep that was stopped. Raises InputError,
    RecordError, UnavailableError.
    """
    from fabrictune.sweeps.executors import Threads
    from fabrictune.sweeps.runner import run_sweep
    from fabrictune.sweeps.schema import load_sweep
    from fabrictune.sweeps.store import open_folder

    executor = Threads(num_workers=num_workers or os.cpu_count() or 1)
    with open_folder(Path(out)) as folder:
        record = run_sweep(load_sweep(Path(path)), folder, executor, trust_code=trust_code, progress=progress)
        folder.write_result(record)
    return record


def _site(rules: str | PathLike[str] | None) -> RuleSettings:
    return CATALOG_SETTINGS if rules is None else read_site_file(Path(rules))
