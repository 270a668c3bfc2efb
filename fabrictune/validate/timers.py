"""Timer study of a scenario's link flap: the model's times, the engine's, and measured ones.

The scenario's first flap or broken link is tried twice for every timeout, retry count and adapter: once it stays down,
and the first queue pair to give up says when a dead peer is noticed; once it comes back, and what the slowest transfer
takes longer than without a fault is the stall. Both count from the moment the link goes down.

Left out: expectations, probes and other faults of the scenario.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.checks import run_check
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.rdma import SIMULATION_DIFFERS
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.foundation.units import PS_PER_NS, format_duration, format_fraction
from fabrictune.netsim.config.faults import Fault, Flap, LinkDown
from fabrictune.rdma_bench.timers.prediction import Prediction, RetransmissionSpec, predict_retransmission
from fabrictune.rdma_bench.timers.trials import TimerTrial, median_gives_up_ns, median_stall_ns
from fabrictune.scenario.adapters import adapter_named, profile_of
from fabrictune.scenario.compilation import assemble
from fabrictune.scenario.composition import Composed, compose, compose_law
from fabrictune.scenario.fault_epochs import faults_of
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import run_engine

NEVER_NS = -1.0  # in the record, also for what was not measured


@dataclass(frozen=True, kw_only=True)
class TimerRow:
    """One adapter with one pair of settings; times from the moment the link goes down, infinite for never."""

    prediction: Prediction
    flap_ns: float
    simulated_gives_up_ns: float
    simulated_stall_ns: float
    measured_gives_up_ns: float  # NaN where nobody has
    measured_stall_ns: float

    @property
    def model_stall_ns(self) -> float:
        """Time at which traffic resumes by the model."""
        return self.prediction.resumes_ns(self.flap_ns)

    def agrees(self, rules: RuleSettings = CATALOG_SETTINGS) -> bool:
        """Whether the engine gives up and resumes when the model says; a stream may resume sooner."""
        gives_up_ns = self.prediction.gives_up_ns
        deviation = rules.threshold(SIMULATION_DIFFERS, "deviation")
        is_late = self.simulated_stall_ns > self.model_stall_ns * (1 + deviation)
        return math.isclose(self.simulated_gives_up_ns, gives_up_ns, rel_tol=deviation) and not is_late


def simulate_timers(
    scenario: Scenario,
    adapters: Sequence[str],
    specs: Sequence[RetransmissionSpec],
    *,
    trials: Sequence[TimerTrial] = (),
    flap_ns: int | None = None,
    progress: Progress | None = None,
) -> list[TimerRow]:
    """Return a row for each adapter (a name or a file) and pair of settings; without adapters, for the scenario's.

    `trials` are measured ones to compare; `flap_ns` is how long the link is down, by default the scenario's own.
    Raises InputError.
    """
    chosen = [adapter_named(name) for name in adapters] or [scenario.adapter]
    experiment = _Experiment(replace(scenario, expect=(), probe=None, capture=None), trials, flap_ns)
    rows = []
    for adapter in chosen:
        for spec in specs:
            rows.append(experiment.row(adapter, spec))
            if progress:
                progress(len(rows) / (len(chosen) * len(specs)))
    return rows


def timer_record(
    scenario: Scenario, rows: Sequence[TimerRow], *, started: float, rules: RuleSettings = CATALOG_SETTINGS
) -> RunRecord:
    """Return the rows as a record, with a finding for each that the engine does not follow."""
    configuration = {"profiles": {row.prediction.profile.name: row.prediction.profile.source for row in rows}}
    record = RunRecord(
        kind="rdma timers simulate",
        run=describe_run(
            seed=scenario.seed, started=started, configuration=configuration, **describe_scenario(scenario)
        ),
        tables={"timers": to_columns("timers", [_columns(row) for row in rows])},
    )
    return record.with_checks(
        run_check(
            SIMULATION_DIFFERS.id,
            f"{len(rows):,} settings and adapters",
            _findings(rows, rules),
            expected=f"the model's times within {format_fraction(rules.threshold(SIMULATION_DIFFERS, 'deviation'))}",
        )
    )


class _Experiment:
    """One scenario, run again and again with other timers and faults."""

    def __init__(self, scenario: Scenario, trials: Sequence[TimerTrial], flap_ns: int | None) -> None:
        self.scenario = scenario
        self.trials = trials
        self.link, self.at_ns, own_ns = _flap_of(scenario)
        self.flap_ns = own_ns if flap_ns is None else flap_ns

    @cached_property
    def composed(self) -> Composed:
        return compose(self.scenario)

    @cached_property
    def law(self) -> CompiledLaw:
        return compose_law(self.scenario)

    def row(self, adapter: Chosen, spec: RetransmissionSpec) -> TimerRow:
        """Return what model and engine say of an adapter with these settings."""
        config = self.scenario.packet_config()
        transport = replace(
            config.transport,
            timeout_exponent=spec.timeout_exponent,
            retries=spec.retries,
            timeout_ns=None,
        )
        engine = replace(self.scenario.engine, spec=replace(config, transport=transport))
        scenario = replace(self.scenario, adapter=adapter, engine=engine, faults=())
        return TimerRow(
            prediction=predict_retransmission(spec, profile_of(adapter)),
            flap_ns=self.flap_ns,
            simulated_gives_up_ns=self._gives_up_ns(scenario),
            simulated_stall_ns=self._stall_ns(scenario),
            measured_gives_up_ns=median_gives_up_ns(self.trials, spec),
            measured_stall_ns=median_stall_ns(self.trials, spec, self.flap_ns),
        )

    def _gives_up_ns(self, scenario: Scenario) -> float:
        dead = self._run(scenario, "link_down", LinkDown(link=self.link, at_ns=self.at_ns))
        aborted_ps = dead.tables["aborts"]["time_ps"]
        return float(aborted_ps.min()) / PS_PER_NS - self.at_ns if len(aborted_ps) else math.inf

    def _stall_ns(self, scenario: Scenario) -> float:
        flap = Flap(link=self.link, at_ns=self.at_ns, down_ns=self.flap_ns)
        finish_ps = self._run(scenario, "flap", flap).tables["transfers"]["finish_ps"]
        if (finish_ps < 0).any():
            return math.inf
        return float((finish_ps - self._undisturbed_finish_ps).max()) / PS_PER_NS

    @cached_property
    def _undisturbed_finish_ps(self) -> Any:
        undisturbed = self._run(replace(self.scenario, faults=(), convergence_delay_ns=None))
        return undisturbed.tables["transfers"]["finish_ps"]

    def _run(self, scenario: Scenario, kind: str = "", fault: Fault | None = None) -> RunRecord:
        if fault:
            scenario = replace(scenario, faults=(Chosen(name=kind, spec=fault),))
        return run_engine(assemble(replace(self.composed, scenario=scenario), self.law))


def _flap_of(scenario: Scenario) -> tuple[str, int, int]:
    """Return link, beginning and length of the scenario's first flap or broken link; raises InputError."""
    for fault in faults_of(scenario):
        if isinstance(fault, Flap):
            return fault.link, fault.at_ns, fault.down_ns
        if isinstance(fault, LinkDown) and fault.until_ns is not None:
            return fault.link, fault.at_ns, fault.until_ns - fault.at_ns
    found, allowed = "no link that goes down and comes back", "a fault `flap`, or `link_down` with `until`"
    raise InputError(Mistake(where=scenario.where("faults"), found=found, allowed=allowed))


def _columns(row: TimerRow) -> dict[str, Any]:
    times_ns = {
        "gives_up_ns": row.prediction.gives_up_ns,
        "simulated_gives_up_ns": row.simulated_gives_up_ns,
        "measured_gives_up_ns": row.measured_gives_up_ns,
        "flap_ns": row.flap_ns,
        "stall_ns": row.model_stall_ns,
        "simulated_stall_ns": row.simulated_stall_ns,
        "measured_stall_ns": row.measured_stall_ns,
    }
    return {
        "profile": row.prediction.profile.name,
        "confidence": row.prediction.confidence,
        "timeout": row.prediction.spec.timeout_exponent,
        "retries": row.prediction.spec.retries,
        **{name: time_ns if math.isfinite(time_ns) else NEVER_NS for name, time_ns in times_ns.items()},
    }


def _findings(rows: Sequence[TimerRow], rules: RuleSettings) -> Iterator[Finding]:
    for row in rows:
        if not row.agrees(rules):
            spec = row.prediction.spec
            yield SIMULATION_DIFFERS.finding(
                entity=f"{row.prediction.profile.name}, timeout {spec.timeout_exponent}, {spec.retries} retries",
                expected=f"failure {_shown(row.prediction.gives_up_ns)}, stall {_shown(row.model_stall_ns)}",
                actual=f"failure {_shown(row.simulated_gives_up_ns)}, stall {_shown(row.simulated_stall_ns)}",
                confidence=Confidence.PREDICTED,
            )


def _shown(time_ns: float) -> str:
    return format_duration(time_ns * PS_PER_NS) if math.isfinite(time_ns) else "never"
