"""A scenario run in an engine: a RunRecord in which broken expectations are findings."""

from dataclasses import replace

from fabrictune.scenario.composing import compose, compose_law, located
from fabrictune.scenario.describing import describe
from fabrictune.scenario.faulting import faults_of, with_faults
from fabrictune.scenario.schema import Scenario
from foundation.records import RunRecord
from netsim.packet import Progress, run
from topology.collisions import analyze_collisions


def simulate(scenario: Scenario, *, trust_code: bool = False, progress: Progress | None = None) -> RunRecord:
    """Run the scenario in the packet engine; `progress` is told the share done and the simulated time in ps.

    Raises InputError.
    """
    law = compose_law(scenario, trust_code=trust_code)
    composed = compose(scenario)
    network = with_faults(scenario, composed.network)
    with located(scenario):
        record = run(
            network,
            composed.traffic,
            law,
            scenario.engine,
            seed=scenario.seed,
            probe=scenario.probe,
            capture=scenario.capture,
            faults=faults_of(scenario),
            progress=progress,
        )
    findings = [finding for expectation in scenario.expect if (finding := expectation.finding(record))]
    return replace(
        record,
        run={**record.run, **describe(composed)},
        tables={**analyze_collisions(composed.network).tables(), **record.tables},
        findings=(*composed.findings, *findings, *record.findings),
    )
