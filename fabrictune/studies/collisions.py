"""ECMP collisions of a scenario without an engine: the links its flows overload, and how badly."""

import time
from dataclasses import asdict, dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray
from fabrictune.foundation.checks import CheckReport, join_reports
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, RunRecord, describe_run
from fabrictune.foundation.units import format_rate
from fabrictune.scenario.composition import Composed, compose
from fabrictune.scenario.provenance import describe_composed
from fabrictune.scenario.schema import Scenario
from fabrictune.scenario.tables import estimate_columns
from fabrictune.topology.ecmp.collisions import CollisionReport, analyze_collisions
from fabrictune.topology.ecmp.polarization import check_polarization
from fabrictune.topology.ecmp.seed_distribution import distribute_over_seeds
from fabrictune.topology.files import fabric_table

INCAST = "incast"  # the workload that declares many to one


def analyze_scenario(
    scenario: Scenario,
    progress: Progress | None = None,
    *,
    num_seeds: int | None = None,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return the load of every link with all of the scenario's queue pairs active at once; raises InputError.

    With `num_seeds`, a table `seeds` of one row says what to expect where the switches' seeds are not known.
    """
    started = time.perf_counter()
    composed = compose(scenario, progress, as_flows=True)
    network = composed.network
    report = analyze_collisions(network)
    tables: dict[str, Columns] = {"fabric": fabric_table(network.fabric), **report.tables()}
    if num_seeds is not None:
        distribution = distribute_over_seeds(
            network.fabric, network.queue_pairs, scenario.routing, num_seeds=num_seeds, progress=progress
        )
        tables["seeds"] = estimate_columns([distribution])
    checked = composed.check_files() + check_collisions(composed, report, rules)
    return RunRecord(
        kind="ecmp analyze",
        run={**describe_run(seed=scenario.seed, started=started), **describe_composed(composed)},
        tables=tables,
        findings=checked.findings,
        checks=checked.checks,
    )


def check_collisions(composed: Composed, report: CollisionReport, rules: RuleSettings) -> CheckReport:
    """Return the checks of a scenario's hash: polarized tiers, overloaded links and receivers."""
    fabric, queue_pairs = composed.network.fabric, composed.network.queue_pairs
    is_declared_Q, part_Q = is_of_declared_incast(composed), composed.part_Q
    return join_reports(
        check_polarization(fabric, composed.scenario.routing),
        report.check_links(fabric, queue_pairs, rules, part_Q=part_Q),
        report.check_receivers(fabric, queue_pairs, rules, is_declared_Q=is_declared_Q, part_Q=part_Q),
    )


def is_of_declared_incast(composed: Composed) -> BoolArray:
    """Return which queue pairs carry an incast of the scenario or of its mixture: many to one is then the question."""
    traffic = composed.scenario.traffic
    is_incast_Q = np.full(len(composed.network.queue_pairs), traffic.name == INCAST)
    if composed.part_N is not None:
        names = [part.name for part in traffic.spec.parts if part.traffic.name == INCAST]
        on_fabric_N = composed.traffic.qp_N >= 0
        is_incast_Q[composed.traffic.qp_N[on_fabric_N & np.isin(composed.part_N.astype(str), names)]] = True
    return is_incast_Q


@dataclass(frozen=True, kw_only=True)
class CollisionSummary:
    """Severity of the collisions."""

    num_flows: int
    num_loaded_links: int  # directions that carry a flow
    num_overloaded_links: int
    worst_load_fraction: float  # demand over rate of the worst link
    mean_throughput_fraction: float  # of what a flow's NIC could send
    min_throughput_fraction: float
    mean_fair_rate_bps: float  # max-min fair
    min_fair_rate_bps: float

    def as_json(self) -> dict[str, object]:
        """Return the summary as JSON values."""
        return asdict(self)

    @property
    def _oversubscribed(self) -> str:
        return str(self.num_overloaded_links) if self.num_overloaded_links else "No"

    @property
    def lines(self) -> list[str]:
        """The summary for people."""
        return [
            f"{self._oversubscribed} oversubscribed links ({self.num_loaded_links} in use, peak offered load "
            f"{100 * self.worst_load_fraction:.0f} %)",
            f"throughput of {self.num_flows} flows: mean {100 * self.mean_throughput_fraction:.0f} % of their rate, "
            f"min {100 * self.min_throughput_fraction:.0f} %",
            f"max-min fair rate per flow: mean {format_rate(self.mean_fair_rate_bps)}, "
            f"min {format_rate(self.min_fair_rate_bps)}",
        ]


def summarize_collisions(record: RunRecord) -> CollisionSummary:
    """Return the summary of an `ecmp analyze` record."""
    loads, throughput = record.tables["loads"], record.tables["throughput"]["throughput_fraction"]
    fair_rate_bps = record.tables["throughput"]["fair_rate_bps"]
    load_fraction = loads["demand_bps"] / loads["rate_bps"]
    return CollisionSummary(
        num_flows=len(throughput),
        num_loaded_links=len(load_fraction),
        num_overloaded_links=len(set(record.tables["collisions"]["port"].tolist())),
        worst_load_fraction=float(load_fraction.max(initial=0.0)),
        mean_throughput_fraction=float(throughput.mean()) if len(throughput) else 1.0,
        min_throughput_fraction=float(throughput.min(initial=1.0)),
        mean_fair_rate_bps=float(fair_rate_bps.mean()) if len(throughput) else 0.0,
        min_fair_rate_bps=float(fair_rate_bps.min()) if len(throughput) else 0.0,
    )
