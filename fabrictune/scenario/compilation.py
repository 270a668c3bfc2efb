"""Compilation of a Scenario to its engine's inputs. A compiled scenario reads, draws or looks up nothing later.

The stages of a run are `load_scenario`, `compile_scenario`, `run_engine` and `judge`, each a type further: Scenario,
CompiledScenario, RunRecord, and a RunRecord with the broken expectations among its findings.
"""

from dataclasses import dataclass
from typing import Any

from fabrictune.cc.interface import CompiledLaw
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.scenario.composition import Composed, compose, compose_law
from fabrictune.scenario.engine_notes import host_link_notes, traffic_class_notes
from fabrictune.scenario.engines import engine_config, engine_of, without_ignored
from fabrictune.scenario.fault_epochs import follow_faults, place_faults
from fabrictune.scenario.laws import tuning_notes
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.fabric import NO_NIC


@dataclass(frozen=True, kw_only=True)
class CompiledScenario(Composed):
    """A scenario ready for its engine; `network` has an epoch after each failure and repair that routing follows."""

    config: Any  # the engine's settings, with the adapter's timers
    law: CompiledLaw | None  # None for an engine that ignores laws, and where nothing is run
    faults: FaultTimeline

    @property
    def notes(self) -> tuple[str, ...]:
        """What the scenario's parts note, a law whose defaults are for other links, and what queues assume."""
        fabric = self.network.fabric
        rates_bps = fabric.port_rate_bps_P[fabric.port_nic_P != NO_NIC]
        tuned = tuning_notes(self.scenario.law, float(rates_bps.min())) if self.law and len(rates_bps) else ()
        return (
            *super().notes,
            *tuned,
            *traffic_class_notes(self.config, self.network),
            *host_link_notes(self.config, fabric),
        )


def compile_scenario(scenario: Scenario, *, trust_code: bool = False) -> CompiledScenario:
    """Return the scenario ready to run; raises InputError, LawError, and UntrustedCodeError for a law without leave."""
    scenario = without_ignored(scenario)
    law = None if "law" in engine_of(scenario).ignores else compose_law(scenario, trust_code=trust_code)
    return assemble(compose(scenario), law)


def assemble(composed: Composed, law: CompiledLaw | None) -> CompiledScenario:
    """Return the compiled scenario of parts that may serve several scenarios; raises InputError.

    Without a law it can be checked, not run.
    """
    scenario = composed.scenario
    config = engine_config(scenario)
    faults = place_faults(scenario, composed.network.fabric, config)
    return CompiledScenario(
        scenario=scenario,
        network=follow_faults(scenario, composed.network, faults),
        traffic=composed.traffic,
        part_N=composed.part_N,
        config=config,
        law=law,
        faults=faults,
    )
