"""A validation of a cluster: its stages in order, each kept as it ends, and gone on with where it was stopped."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabrictune.fleet.audit.rule_files import AuditRule
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.topology.fabric import Fabric
from fabrictune.validate.cluster.crew import Crew
from fabrictune.validate.cluster.exports import write_limits
from fabrictune.validate.cluster.nics import find_nics
from fabrictune.validate.cluster.results import StageResult, StageState, read_results, write_result
from fabrictune.validate.cluster.site import ClusterSettings, Site
from fabrictune.validate.cluster.stages.audit import run_audit, run_cabling, run_timers
from fabrictune.validate.cluster.stages.counters import run_before, run_counters
from fabrictune.validate.cluster.stages.doctor import run_doctor
from fabrictune.validate.cluster.stages.matrix import run_matrix
from fabrictune.validate.cluster.stages.ranks import run_collectives, run_training

Stage = Callable[[Site], StageResult]

STAGES: Mapping[str, tuple[Stage, str]] = {
    "doctor": (run_doctor, "who takes part, with which software and NICs"),
    "audit": (run_audit, "settings of NICs, switches and job that disagree"),
    "cabling": (run_cabling, "what LLDP hears against the planned fabric"),
    "before": (run_before, "counters before the measurements"),
    "matrix": (run_matrix, "flows of all rails: alone, concurrent pairs, bisections"),
    "timers": (run_timers, "ladder of timeouts, from adapter to scheduler"),
    "collectives": (run_collectives, "all-reduce and all-gather, every result checked"),
    "training": (run_training, "a short training over all nodes"),
    "counters": (run_counters, "what rose meanwhile"),
}
ALWAYS_AGAIN = ("doctor",)  # who takes part is not what it was
MACHINE_S = 60.0


@dataclass(frozen=True, kw_only=True)
class ValidationPlan:
    """What is validated, and how."""

    fabric: Fabric | None
    interfaces: Sequence[str]
    settings: ClusterSettings
    rules: RuleSettings
    audit_rules: Sequence[AuditRule]
    only: Collection[str] = ()  # stages, all where it is empty


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Results by stage, in order; stages that did not run have none."""

    results: Mapping[str, StageResult]
    is_stopped: bool

    @property
    def is_complete(self) -> bool:
        """Whether every stage that ran is done, or was skipped with its reason."""
        states = (result.state for result in self.results.values())
        return all(state in (StageState.DONE, StageState.SKIPPED) for state in states)


def validate_cluster(
    plan: ValidationPlan,
    crew: Crew,
    folder: Path,
    stages: Path,
    *,
    on_result: Callable[[StageResult], None],
    progress: Callable[[str], Progress],
) -> Validation:
    """Run the stages that are asked for and not done; results are in `stages`. Closes the crew.

    `progress` gives the callback of a stage. Ctrl-C ends the stage that runs and keeps what it has.
    """
    results = read_results(stages)
    with _closed(crew):
        try:
            site = _open(plan, crew, folder)
            write_limits(site)
            for name in _to_run(plan.only, results):
                result = _run(name, replace(site, results=results, progress=progress(name)))
                results[name] = result
                write_result(result, stages)
                on_result(result)
                if result.state == StageState.STOPPED:
                    return _validation(results, is_stopped=True)
        except KeyboardInterrupt:
            return _validation(results, is_stopped=True)
    return _validation(results, is_stopped=False)


def _open(plan: ValidationPlan, crew: Crew, folder: Path) -> Site:
    crew.open()
    answers = crew.ask_all({"do": "machine"}, limit_s=MACHINE_S)
    machines: dict[str, Mapping[str, Any]] = {
        node: answer.result for node, answer in answers.items() if not answer.error
    }
    return Site(
        crew=crew,
        machines=machines,
        nics=find_nics(machines, plan.fabric, plan.interfaces),
        fabric=plan.fabric,
        settings=plan.settings,
        rules=plan.rules,
        audit_rules=plan.audit_rules,
        folder=folder,
    )


def _to_run(only: Collection[str], results: Mapping[str, StageResult]) -> Iterator[str]:
    """Yield the stages that are asked for by name, else those that are not done."""
    for name in STAGES:
        is_done = name in results and results[name].state == StageState.DONE and name not in ALWAYS_AGAIN
        if name in only or (not only and not is_done):
            yield name


def _run(name: str, site: Site) -> StageResult:
    started = time.perf_counter()
    try:
        result = STAGES[name][0](site)
    except KeyboardInterrupt:
        result = StageResult(name=name, state=StageState.STOPPED, reason="stopped")
    return replace(result, wall_s=round(time.perf_counter() - started, 3))


def _validation(results: Mapping[str, StageResult], *, is_stopped: bool) -> Validation:
    in_order = {name: results[name] for name in STAGES if name in results}
    return Validation(results=in_order, is_stopped=is_stopped)


@contextmanager
def _closed(crew: Crew) -> Iterator[None]:
    try:
        yield
    finally:
        crew.close()
