"""Simulation of a scenario in its engine: a RunRecord in which broken expectations are findings."""

from dataclasses import replace

from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.scenario.compilation import CompiledScenario, compile_scenario
from fabrictune.scenario.engines import engine_of
from fabrictune.scenario.places import placed
from fabrictune.scenario.provenance import describe_composed
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.ecmp.collisions import analyze_collisions


def simulate(
    scenario: Scenario, *, trust_code: bool = False, with_collisions: bool = True, progress: Progress | None = None
) -> RunRecord:
    """Compile the scenario, run it in its engine and judge the record.

    Besides the engine's tables the record has those of `ecmp analyze` for the network before any fault, max-min fair
    rates included, unless it is to be without `with_collisions`. Raises InputError, LawError.
    """
    compiled = compile_scenario(scenario, trust_code=trust_code)
    record = judge(compiled, run_engine(compiled, progress=progress))
    if not with_collisions:
        return record
    return replace(record, tables={**analyze_collisions(compiled.network).tables(), **record.tables})


def run_engine(compiled: CompiledScenario, *, progress: Progress | None = None) -> RunRecord:
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
            progress=progress,
        )


def judge(compiled: CompiledScenario, record: RunRecord) -> RunRecord:
    """Return the record with its scenario, the part of each transfer, and a finding for each broken expectation."""
    parts = _parts(compiled, record)
    record = replace(record, run={**record.run, **describe_composed(compiled)}, tables={**record.tables, **parts})
    broken = [finding for expectation in compiled.scenario.expect if (finding := expectation.finding(record))]
    return replace(record, findings=(*compiled.findings, *broken, *record.findings))


def _parts(compiled: CompiledScenario, record: RunRecord) -> dict[str, Columns]:
    """Return the record's transfers with the part of the traffic each belongs to, nothing for traffic of one kind."""
    if compiled.part_N is None:
        return {}
    transfers = record.tables["transfers"]
    return {"transfers": {**transfers, "part": compiled.part_N[transfers["transfer"]]}}
