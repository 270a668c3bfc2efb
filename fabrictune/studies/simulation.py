"""A scenario run in an engine: a RunRecord in which broken expectations are findings."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.netsim.packet import run
from fabrictune.scenario.composition import Composed, compose, compose_engine, compose_law
from fabrictune.scenario.fault_epochs import faults_of, with_faults
from fabrictune.scenario.places import placed
from fabrictune.scenario.provenance import describe
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.ecmp.collisions import analyze_collisions


def simulate(scenario: Scenario, *, trust_code: bool = False, progress: Progress | None = None) -> RunRecord:
    """Run the scenario in the packet engine; raises InputError."""
    law = compose_law(scenario, trust_code=trust_code)
    composed = compose(scenario)
    record = simulate_composed(composed, law, progress=progress)
    return replace(record, tables={**analyze_collisions(composed.network).tables(), **record.tables})


def simulate_composed(composed: Composed, law: CompiledLaw, *, progress: Progress | None = None) -> RunRecord:
    """Run what a scenario has been made into; raises InputError."""
    scenario = composed.scenario
    network = with_faults(scenario, composed.network)
    with placed(scenario):
        record = run(
            network,
            composed.traffic,
            law,
            compose_engine(scenario),
            seed=scenario.seed,
            probe=scenario.probe,
            capture=scenario.capture,
            faults=faults_of(scenario),
            progress=progress,
        )
    if composed.part_N is not None:
        record = replace(record, tables={**record.tables, "transfers": _with_parts(record, composed.part_N)})
    findings = [finding for expectation in scenario.expect if (finding := expectation.finding(record))]
    return replace(
        record,
        run={**record.run, **describe(composed)},
        findings=(*composed.findings, *findings, *record.findings),
    )


def _with_parts(record: RunRecord, part_N: NDArray[np.object_]) -> Columns:
    """Return the record's transfers, each with the part of the traffic it belongs to."""
    transfers = record.tables["transfers"]
    return {**transfers, "part": part_N[transfers["transfer"]]}
