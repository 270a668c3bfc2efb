"""Report of a probing: paths, comparison with a model, findings; as JSON, and as a run record.

The record is of kind `topo probe`; its tables are `probed_flows` and `probed_hops`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from typing import Any

from fabrictune.foundation.checks import Check, join_reports, run_checks, skip_check
from fabrictune.foundation.records import Columns, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.topology.probing.comparison import Model, PathComparison, compare_paths
from fabrictune.topology.probing.discovery import Discovery
from fabrictune.topology.probing.findings import DIFFERENCE_RULES, GAP_RULES, find_differences, find_gaps
from fabrictune.topology.probing.names import Names, hop_text
from fabrictune.topology.probing.observations import Hop
from fabrictune.topology.probing.paths import TargetPaths, group_paths

KIND = "topo probe"
UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """The paths to every target, in the order of the plan."""

    plan: Mapping[str, Any]
    num_probes: int
    num_replies: int
    duration_s: float
    targets: tuple[TargetPaths, ...]
    comparisons: tuple[PathComparison, ...]  # one for each target, or none
    names: Names
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]

    def as_json(self) -> dict[str, Any]:
        """Return all but findings and checks as JSON values."""
        compared = {comparison.target_ipv4: _comparison_json(comparison) for comparison in self.comparisons}
        return {
            "num_probes": self.num_probes,
            "num_replies": self.num_replies,
            "duration_s": round(self.duration_s, 6),
            "targets": [
                {
                    "source": str(IPv4Address(target.source_ipv4)),
                    "target": str(IPv4Address(target.target_ipv4)),
                    "unseen_fraction_at_most": target.unseen_fraction,
                    "paths": [
                        {
                            "hops": [_hop_json(hop, self.names) for hop in path.hops],
                            "ending": path.ending.value,
                            "is_complete": path.is_complete,
                            "source_ports": list(path.source_ports),
                        }
                        for path in target.paths
                    ],
                    "model": compared.get(target.target_ipv4),
                }
                for target in self.targets
            ],
        }

    def record(self, *, started: float) -> RunRecord:
        """Return the run record; `started` is what `time.perf_counter` said at the start. No part of it is random."""
        return RunRecord(
            kind=KIND,
            run=describe_run(seed=0, started=started, plan=self.plan, **self.as_json()),
            tables={"probed_flows": _flow_table(self.targets), "probed_hops": _hop_table(self.targets, self.names)},
            findings=self.findings,
            checks=self.checks,
        )


def report_probing(discovery: Discovery, names: Names, model: Model | None = None) -> ProbeReport:
    """Return the result of a discovery, compared with a model if given; raises InputError as `compare_paths` does."""
    targets = tuple(group_paths(discovery.seen))
    comparisons = tuple(compare_paths(target, names, model) for target in targets) if model else ()
    subject = f"{len(targets)} targets"
    differences = (
        run_checks(
            DIFFERENCE_RULES, subject, [one for comparison in comparisons for one in find_differences(comparison)]
        )
        if model
        else join_reports(
            *(skip_check(rule, subject, "no model to compare with (--against)") for rule in DIFFERENCE_RULES)
        )
    )
    report = run_checks(GAP_RULES, subject, find_gaps(targets, names)) + differences
    return ProbeReport(
        plan=asdict(discovery.plan),
        num_probes=discovery.num_probes,
        num_replies=discovery.seen.num_replies,
        duration_s=discovery.duration_s,
        targets=targets,
        comparisons=comparisons,
        names=names,
        findings=report.findings,
        checks=report.checks,
    )


def _hop_json(hop: Hop, names: Names) -> dict[str, Any]:
    addresses = [str(IPv4Address(address)) for address in hop]
    return {"addresses": addresses, "names": [names.get(address, "") for address in hop]}


def _comparison_json(comparison: PathComparison) -> dict[str, Any]:
    return {
        "num_source_ports": comparison.num_source_ports,
        "num_agreeing": comparison.num_agreeing,
        "chance_fraction": comparison.chance_fraction,
        "predicted": [list(way) for way in comparison.predicted],
        "unpredicted": [list(way) for way in comparison.unpredicted],
        "missing": [list(way) for way in comparison.missing],
    }


def _flow_table(targets: Sequence[TargetPaths]) -> Columns:
    rows = [
        {"target_ipv4": target.target_ipv4, "source_port": port, "path": number, "ending": path.ending.value}
        for target in targets
        for number, path in enumerate(target.paths)
        for port in path.source_ports
    ]
    return to_columns("probed_flows", rows)


def _hop_table(targets: Sequence[TargetPaths], names: Names) -> Columns:
    rows = [
        {
            "target_ipv4": target.target_ipv4,
            "path": number,
            "distance": distance,
            "ipv4": address,
            "name": hop_text((address,) if hop else (), names),
        }
        for target in targets
        for number, path in enumerate(target.paths)
        for distance, hop in enumerate(path.hops, 1)
        for address in hop or (UNKNOWN,)
    ]
    return to_columns("probed_hops", rows)
