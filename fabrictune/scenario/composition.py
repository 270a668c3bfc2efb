"""Composition of a Scenario: fabric, workload and routing put together, as every analysis needs them.

Mistakes that only show here (a rank more than the fabric has GPUs, a receiver that does not exist) name the line of the
scenario they come from, unless they lie in another file, which they then name.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Finding
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.workloads.table import GeneratedTraffic
from fabrictune.scenario.fabrics import make_fabric
from fabrictune.scenario.laws import compile_chosen
from fabrictune.scenario.mixture import TRAFFIC, MixSpec, mix
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.cabling import ImportedFabric
from fabrictune.topology.network import Network
from fabrictune.topology.routing import build_network


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A scenario's network and what it has to carry: enough for every analysis that runs no engine."""

    scenario: Scenario
    network: Network
    traffic: TrafficTrace
    part_N: NDArray[np.object_] | None = None  # of a mixture: the name of each transfer's part
    findings: tuple[Finding, ...] = ()  # contradictions in the fabric's files
    notes: tuple[str, ...] = ()  # what was filled in or left out when the fabric was imported

    def check_files(self) -> CheckReport:
        """Return the contradictions in the fabric's files, as the checks that found them."""
        rules = dict.fromkeys(finding.id for finding in self.findings)
        subject, expected = "files of the fabric", "files that agree on every link"
        return join_reports(
            *(
                run_check(rule, subject, [one for one in self.findings if one.id == rule], expected=expected)
                for rule in rules
            )
        )


def compose_fabric(scenario: Scenario) -> Fabric:
    """Build or import the scenario's fabric; raises InputError."""
    return _compose_fabric(scenario).fabric


def _compose_fabric(scenario: Scenario) -> ImportedFabric:
    """Return the fabric, its notes given as warnings too."""
    with placed(scenario, "fabric", scenario.fabric.spec):
        imported = make_fabric(scenario.fabric)
    for note in imported.notes:
        warnings.warn(note, FabrictuneWarning, stacklevel=3)
    return imported


def compose(scenario: Scenario, progress: Progress | None = None, *, as_flows: bool = False) -> Composed:
    """Build the scenario's fabric, traffic and paths; `progress` receives the completed fraction. Raises InputError.

    With `as_flows` a job's traffic may be a flow a queue pair, which is all that an analysis without engine needs.
    """
    report = progress or (lambda fraction, note="", /: None)
    imported = _compose_fabric(scenario)
    fabric = imported.fabric
    report(0.2)
    with placed(scenario, "traffic", scenario.traffic.spec):
        (queue_pairs, traffic), part_N = _make_traffic(scenario, fabric, as_flows=as_flows)
    report(0.5)
    with placed(scenario, "routing", scenario.routing):
        network = build_network(fabric, queue_pairs, scenario.routing)
    report(1.0)
    return Composed(
        scenario=scenario,
        network=network,
        traffic=traffic,
        part_N=part_N,
        findings=imported.findings,
        notes=imported.notes,
    )


def _make_traffic(
    scenario: Scenario, fabric: Fabric, *, as_flows: bool
) -> tuple[GeneratedTraffic, NDArray[np.object_] | None]:
    spec = scenario.traffic.spec
    if isinstance(spec, MixSpec):
        return mix(spec, fabric, scenario.seed)
    workload = TRAFFIC[scenario.traffic.name]
    make = (as_flows and workload.make_flows) or workload.make
    return make(spec, fabric, scenario.seed), None


def compose_law(scenario: Scenario, *, trust_code: bool) -> CompiledLaw:
    """Compile the scenario's law; raises LawError, and UntrustedCodeError for one outside the project without leave."""
    with placed(scenario, "law", scenario.law.spec):
        return compile_chosen(scenario.law, document=scenario.document, trust_code=trust_code)
