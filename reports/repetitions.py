"""Repetitions: runs of one scenario that differ in their seed alone, which are values of one quantity each."""

from collections.abc import Sequence

from fabrictune.foundation.metrics.changes import MIN_VALUES
from fabrictune.reports.blocks import listed
from fabrictune.reports.differences import SEED, scenario_values
from fabrictune.reports.record_view import Run

Repetitions = tuple[Run, ...]


def repetitions_of(runs: Sequence[Run]) -> list[Repetitions]:
    """Return the runs of each scenario, in the order of the first; none where any was run under fewer than 3 seeds."""
    if len(runs) < 2:
        return []
    of_scenario: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        values = scenario_values(run)
        if SEED not in values:
            return []
        own = tuple(sorted((key, value) for key, value in values.items() if key != SEED))
        of_scenario.setdefault((run.record.kind, str(run.record.run.get("versions")), own), []).append(run)
    groups = [tuple(group) for group in of_scenario.values()]
    return groups if all(_has_enough_seeds(group) for group in groups) else []


def label_of(group: Repetitions) -> str:
    """Return the names of the runs."""
    return listed([run.label for run in group])


def seeds_of(group: Repetitions) -> list[str]:
    """Return the seed of each run."""
    return [scenario_values(run)[SEED] for run in group]


def _has_enough_seeds(group: Repetitions) -> bool:
    return len(group) >= MIN_VALUES and len(set(seeds_of(group))) == len(group)
