"""Compilation of a Scenario to its engine's inputs. A compiled scenario reads, draws or looks up nothing later.

The stages of a run are `load_scenario`, `compile_scenario`, `run_engine` and `judge`, each a type further: Scenario,
CompiledScenario, RunRecord, and a RunRecord with the broken expectations among its findings.
"""

from dataclasses import dataclass
from typing import Any

from fabrictune.cc.fitting import far_settings_note, fit_law, fitting_note, variant_note
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.link_rules import RED
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.link import fit_marking, link_of, marking_note
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.scenario.composition import Composed, compose, compose_law
from fabrictune.scenario.engine_notes import host_link_notes, share_notes, traffic_class_notes
from fabrictune.scenario.engines import engine_config, engine_of, without_ignored
from fabrictune.scenario.fault_epochs import follow_faults, place_faults
from fabrictune.scenario.places import placed
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.network import Network


@dataclass(frozen=True, kw_only=True)
class CompiledScenario(Composed):
    """A scenario ready for its engine; `network` has an epoch after each failure and repair that routing follows."""

    config: Any  # the engine's settings, with the adapter's timers
    law: CompiledLaw | None  # None for an engine that ignores laws, and where nothing is run
    faults: FaultTimeline
    derived: tuple[str, ...] = ()  # settings that were left open, with the values and rules that filled them

    @property
    def notes(self) -> tuple[str, ...]:
        """What the scenario's parts note, what law and switches got from the link, and what queues assume."""
        return (
            *super().notes,
            *self.derived,
            *traffic_class_notes(self.config, self.network),
            *host_link_notes(self.config, self.network.fabric),
            *share_notes(self.config, self.law),
        )


def compile_scenario(scenario: Scenario) -> CompiledScenario:
    """Return the scenario ready to run; raises InputError, LawError, and UntrustedCodeError for a law without leave."""
    scenario = without_ignored(scenario)
    law = None if "law" in engine_of(scenario).ignores else compose_law(scenario)
    return assemble(compose(scenario), law)


def assemble(composed: Composed, law: CompiledLaw | None) -> CompiledScenario:
    """Return the compiled scenario of parts that may serve several scenarios; raises InputError.

    Without a law it can be checked, not run.
    """
    scenario = composed.scenario
    law, config, derived = _fit(scenario, composed.network, law, engine_config(scenario))
    faults = place_faults(scenario, composed.network.fabric, config)
    return CompiledScenario(
        scenario=scenario,
        network=follow_faults(scenario, composed.network, faults),
        traffic=composed.traffic,
        part_N=composed.part_N,
        fold=composed.fold,
        config=config,
        law=law,
        faults=faults,
        derived=derived,
    )


def _fit(
    scenario: Scenario, network: Network, law: CompiledLaw | None, config: Any
) -> tuple[CompiledLaw | None, Any, tuple[str, ...]]:
    """Return law and settings with what they leave open as it fits the link, and a note of each; raises InputError."""
    if not isinstance(config, PacketConfig) or (isinstance(config, FluidConfig) and not config.audits_fraction):
        return law, config, ()
    with placed(scenario, "engine", config):
        link = link_of(network, config.with_telemetry() if law and law.uses_telemetry else config)
        if link is None:
            return law, config, ()
        rule = law.marking if law else RED
        fitted = fit_marking(config, rule, link)
    if law is None:
        return None, fitted, ()
    far = far_settings_note(law, link)
    law = fit_law(law, link)
    marking = marking_note(config, fitted, rule, link) if law.reads_marks else ""
    notes = (variant_note(law), fitting_note(law), far, f"law {law.name}: {marking}" if marking else "")
    return law, fitted, tuple(note for note in notes if note)
