"""The replay of a training run on a fabric, behind the run."""

from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.cli.framework.records import output_folder
from fabrictune.cli.sim.running import ScenarioRun, run_scenario

if TYPE_CHECKING:
    from fabrictune.foundation.layout import ParallelLayout


def check_replay(layout: "ParallelLayout", fabric: Path, record: Path) -> None:
    """Raise InputError, before the training, for a fabric that cannot be read or is too small for the ranks."""
    from fabrictune.scenario.jobs import JobSpec
    from fabrictune.topology.importers import import_fabric

    JobSpec(layout=layout).place_on(import_fabric([fabric]))
    output_folder(replay_folder(record, fabric))


def replay_record(record: Path, fabric: Path, *, is_quiet: bool) -> ScenarioRun:
    """Replay the trace of a record on a fabric; raises InputError."""
    from fabrictune.scenario.trace_on_fabric import trace_on_fabric

    traced = trace_on_fabric(record, fabric)
    place = replay_folder(record, fabric)
    return run_scenario(traced.scenario, place, assumptions=traced.assumptions, is_quiet=is_quiet)


def replay_folder(record: Path, fabric: Path) -> Path:
    """Return the folder of the replay's record, beside that of the training."""
    return record.with_name(f"{record.name}-on-{fabric.name.split('.')[0]}")
