"""Simulation of a scenario in its engine: a RunRecord in which broken expectations are findings."""

from dataclasses import replace

from fabrictune.foundation.checks import CheckReport, join_reports, skip_check
from fabrictune.foundation.finding_rules.paths import LINK_OVERLOADED, POLARIZED_TIERS, RECEIVER_OVERLOADED
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress, stage
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.scenario.compilation import CompiledScenario, compile_scenario
from fabrictune.scenario.engines import engine_of
from fabrictune.scenario.expectations import check_expectations
from fabrictune.scenario.places import placed
from fabrictune.scenario.provenance import describe_composed
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.alone import compare_alone
from fabrictune.studies.collisions import check_collisions, is_of_declared_incast
from fabrictune.studies.replay.findings import check_replays
from fabrictune.studies.replay.tables import replay_tables
from fabrictune.topology.ecmp.collisions import CollisionReport, analyze_collisions
from fabrictune.topology.ecmp.polarization import check_polarization


def simulate(
    scenario: Scenario,
    *,
    with_collisions: bool = True,
    runs_alone: bool = False,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> RunRecord:
    """Compile the scenario, run it in its engine and judge the record.

    Besides the engine's tables and checks the record has those of `ecmp analyze` for the network before any fault,
    max-min fair rates included, unless it is to be without `with_collisions`. With `runs_alone` each part of a
    mixture is run without the others too, for the table `alone`. `rules` has the thresholds of its findings. Raises
    InputError, LawError.
    """
    compiled = compile_scenario(scenario)
    runs_alone = runs_alone and compiled.part_N is not None
    first = stage(progress, 0, 2) if runs_alone else progress
    record = judge(compiled, run_engine(compiled, rules=rules, progress=first), rules)
    if runs_alone and record.run["outcome"] != "interrupted":
        alone = compare_alone(compiled, record, run_engine, stage(progress, 1, 2))
        record = replace(record, tables={**record.tables, "alone": alone})
    if not with_collisions:
        return record
    collisions = analyze_collisions(compiled.network)
    report = check_simulated_collisions(compiled, collisions, rules)
    return replace(record, tables={**collisions.tables(), **record.tables}).with_checks(report)


def check_simulated_collisions(
    compiled: CompiledScenario, collisions: CollisionReport, rules: RuleSettings
) -> CheckReport:
    """Return the checks of a scenario's hash as far as they tell something of its simulated run.

    They take each queue pair to keep its hash path and all to send at once.
    """
    fabric, queue_pairs = compiled.network.fabric, compiled.network.queue_pairs
    subject = f"{len(queue_pairs):,} queue pairs"
    if compiled.traffic.arrives_over_time:
        reason = "flows begin at times of their own; ecmp analyze takes all to send at once"
        skipped = join_reports(
            *(skip_check(rule.id, subject, reason) for rule in (LINK_OVERLOADED, RECEIVER_OVERLOADED))
        )
        return check_polarization(fabric, compiled.scenario.routing) + skipped
    mode = getattr(compiled.config, "path_choice", PathChoiceConfig()).mode
    if mode != PathChoiceConfig().mode:
        reason = f"path choice is {mode}, and the check follows the paths of the hash"
        skipped = join_reports(*(skip_check(rule.id, subject, reason) for rule in (POLARIZED_TIERS, LINK_OVERLOADED)))
        return skipped + collisions.check_receivers(
            fabric, queue_pairs, rules, is_declared_Q=is_of_declared_incast(compiled), part_Q=compiled.part_Q
        )
    return check_collisions(compiled, collisions, rules)


def run_engine(
    compiled: CompiledScenario, *, rules: RuleSettings = CATALOG_SETTINGS, progress: Progress | None = None
) -> RunRecord:
    """Return the record as the scenario's engine writes it; raises InputError, LawError."""
    scenario = compiled.scenario
    with placed(scenario):
        return engine_of(scenario).run(
            compiled.network,
            compiled.traffic,
            compiled.law,
            compiled.config,
            seed=scenario.seed,
            probe=scenario.probe,
            capture=scenario.capture,
            faults=compiled.faults,
            rules=rules,
            progress=progress,
        )


def judge(compiled: CompiledScenario, record: RunRecord, rules: RuleSettings = CATALOG_SETTINGS) -> RunRecord:
    """Return the record with its scenario, the part of each transfer, its replayed steps, and their checks."""
    replayed = {} if compiled.fold else replay_tables(compiled, record)  # of all ranks of the job's trace
    tables = {**record.tables, **_parts(compiled, record), **_ports(compiled, record), **replayed}
    record = replace(record, run={**record.run, **describe_composed(compiled)}, tables=tables)
    expectations = check_expectations(compiled.scenario.expect, record)
    return record.with_checks(compiled.check_files() + expectations + check_replays(record, rules))


def _parts(compiled: CompiledScenario, record: RunRecord) -> dict[str, Columns]:
    """Return the record's transfers with the part of the traffic each belongs to, nothing for traffic of one kind."""
    if compiled.part_N is None:
        return {}
    transfers = record.tables["transfers"]
    return {"transfers": {**transfers, "part": compiled.part_N[transfers["transfer"]]}}


def _ports(compiled: CompiledScenario, record: RunRecord) -> dict[str, Columns]:
    """Return the record's tables of ports without those of rails that were not simulated."""
    if compiled.fold is None:
        return {}
    is_other_P = compiled.fold.is_other_P
    tables = {name: record.tables[name] for name in ("ports", "queues") if name in record.tables}
    return {
        name: {column: values[~is_other_P[table["port"]]] for column, values in table.items()}
        for name, table in tables.items()
    }
