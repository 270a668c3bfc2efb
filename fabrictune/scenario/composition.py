"""Composition of a Scenario: fabric, workload and routing put together, as every analysis needs them.

Mistakes that only show here (a rank more than the fabric has GPUs, a receiver that does not exist) name the line of the
scenario they come from, unless they lie in another file, which they then name.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Finding
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim.workloads.table import GeneratedTraffic
from fabrictune.scenario.fabrics import make_fabric
from fabrictune.scenario.idle_keys import idle_notes
from fabrictune.scenario.laws import compile_chosen
from fabrictune.scenario.mixture import TRAFFIC, MixSpec, mix
from fabrictune.scenario.places import placed
from fabrictune.scenario.rail_fold import RailFold, fold_to_a_rail
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import Network
from fabrictune.topology.routing import build_network
from fabrictune.topology.source_port_files import apply_source_ports


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A scenario's network and what it has to carry: enough for every analysis that runs no engine."""

    scenario: Scenario
    network: Network
    traffic: TrafficTrace
    part_N: NDArray[np.object_] | None = None  # of a mixture: the name of each transfer's part
    fold: RailFold | None = None  # where one rail stands for all

    @property
    def part_Q(self) -> Sequence[str] | None:
        """The name of the part that each queue pair belongs to, None for traffic of one kind."""
        if self.part_N is None:
            return None
        part_of_qp = dict(zip(self.traffic.qp_N.tolist(), self.part_N.tolist(), strict=True))
        return [part_of_qp.get(row, "") for row in range(len(self.network.queue_pairs))]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Contradictions in the fabric's files."""
        return self.network.fabric.findings

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, guessed or left out of the fabric and the traffic, and settings without effect."""
        fold = (self.fold.note,) if self.fold else ()
        return (*notes_of_scenario(self.scenario), *fold, *self.network.fabric.notes, *self.traffic.notes)

    def check_files(self) -> CheckReport:
        """Return the checks of the fabric's files."""
        return self.network.fabric.check_files()


def notes_of_scenario(scenario: Scenario) -> tuple[str, ...]:
    """Return a note for each key that is set and has no effect."""
    return (*scenario.notes, *idle_notes(scenario))


def compose_fabric(scenario: Scenario) -> Fabric:
    """Build or import the scenario's fabric; raises InputError. Its notes, and idle keys, are warnings too."""
    _warn(notes_of_scenario(scenario))
    with placed(scenario, "fabric", scenario.fabric.spec):
        fabric = make_fabric(scenario.fabric)
    _warn(fabric.notes)
    return fabric


def compose_traffic(
    scenario: Scenario, fabric: Fabric, spec: Any = None, *, as_flows: bool = False, has_own_ports: bool = True
) -> tuple[GeneratedTraffic, NDArray[np.object_] | None]:
    """Return the scenario's traffic and, of a mixture, the name of each transfer's part; raises InputError.

    `spec` takes the place of the scenario's own traffic, and is of its kind. With `has_own_ports` the queue pairs have
    the ports of the scenario's file, where it names one. The notes of the traffic are warnings too.
    """
    spec = scenario.traffic.spec if spec is None else spec
    with placed(scenario, "traffic", spec):
        (queue_pairs, traffic), part_N = _make_traffic(scenario, fabric, spec, as_flows=as_flows)
    if scenario.source_ports is not None and has_own_ports:
        queue_pairs, notes = apply_source_ports(scenario.source_ports, fabric, queue_pairs)
        traffic = traffic.with_notes(notes)
    _warn(traffic.notes)
    return (queue_pairs, traffic), part_N


def compose(scenario: Scenario, progress: Progress | None = None, *, as_flows: bool = False) -> Composed:
    """Build the scenario's fabric, traffic and paths; `progress` receives the completed fraction. Raises InputError.

    With `as_flows` a job's traffic may be a flow a queue pair, which is all that an analysis without engine needs. Such
    an analysis has all rails where the scenario folds them.
    """
    report = progress or (lambda fraction, note="", /: None)
    fabric = compose_fabric(scenario)
    report(0.2)
    if scenario.fold and not as_flows:
        with placed(scenario):
            folded = fold_to_a_rail(scenario, fabric)
        report(1.0)
        _warn((folded.fold.note, *folded.traffic.notes))
        return Composed(scenario=scenario, network=folded.network, traffic=folded.traffic, fold=folded.fold)
    (queue_pairs, traffic), part_N = compose_traffic(scenario, fabric, as_flows=as_flows)
    report(0.5)
    with placed(scenario, "routing", scenario.routing):
        network = build_network(fabric, queue_pairs, scenario.routing)
    report(1.0)
    return Composed(scenario=scenario, network=network, traffic=traffic, part_N=part_N)


def _make_traffic(
    scenario: Scenario, fabric: Fabric, spec: Any, *, as_flows: bool
) -> tuple[GeneratedTraffic, NDArray[np.object_] | None]:
    if isinstance(spec, MixSpec):
        return mix(spec, fabric, scenario.seed)
    workload = TRAFFIC[scenario.traffic.name]
    make = (as_flows and workload.make_flows) or workload.make
    return make(spec, fabric, scenario.seed), None


def _warn(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, FabrictuneWarning, stacklevel=3)


def compose_law(scenario: Scenario) -> CompiledLaw:
    """Compile the scenario's law; raises LawError, and UntrustedCodeError for one outside the project without leave."""
    with placed(scenario, "law", scenario.law.spec):
        return compile_chosen(scenario.law, document=scenario.document, trust_code=scenario.trust_code)
