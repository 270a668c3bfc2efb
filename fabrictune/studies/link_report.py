"""Report on a link of a scenario: the paths of the flows that meet there, and their ranks in a job."""

from collections.abc import Mapping
from dataclasses import replace

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.progress import Progress
from fabrictune.scenario.composition import compose
from fabrictune.scenario.jobs import JobSpec
from fabrictune.scenario.mixture import MixSpec, placements
from fabrictune.scenario.schema import Scenario
from fabrictune.topology.ecmp.collisions import CollisionReport, analyze_collisions
from fabrictune.topology.ecmp.link_report import LinkExplanation, explain_link
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.lookup import find_port
from fabrictune.topology.placement import Placement


def explain_scenario_link(scenario: Scenario, link: str | None, progress: Progress | None = None) -> LinkExplanation:
    """Return the flows that cross a link, by default the one with the highest offered load; raises InputError."""
    composed = compose(scenario, progress, as_flows=True)
    fabric = composed.network.fabric
    report = analyze_collisions(composed.network)
    port = find_port(fabric, link, where="LINK") if link else _busiest_port(report)
    jobs, part_Q = placements_of(scenario, fabric), composed.part_Q
    explanation = explain_link(composed.network, report, port, placements=jobs, part_Q=part_Q)
    return replace(explanation, notes=composed.notes)


def placements_of(scenario: Scenario, fabric: Fabric) -> Mapping[str, Placement]:
    """Return where the ranks of each job of the scenario run, by its part of a mixture, "" for a job alone."""
    spec = scenario.traffic.spec
    if isinstance(spec, MixSpec):
        return placements(spec, fabric)
    return {"": spec.place_on(fabric)} if isinstance(spec, JobSpec) else {}


def _busiest_port(report: CollisionReport) -> int:
    load_P = report.demand_bps_P / report.rate_bps_P
    if not load_P.any():
        raise InputError(Mistake(where="LINK", found="no link carries traffic", next_step="name a link"))
    return int(load_P.argmax())
