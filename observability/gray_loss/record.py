"""Lossy links as a run record."""

from collections.abc import Iterator
from statistics import NormalDist

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.gray_loss import LOSSY_LINK
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Confidence
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.observability.gray_loss.counts import PathCounts
from fabrictune.observability.gray_loss.detection import LossReport, find_lossy_links

KIND = "rdma gray-loss"
POWER = 0.9
EVEN_SPRAYING = "packets are assumed to be sprayed over a flow's paths in the shares of the file"


def make_loss_record(
    counts: PathCounts, *, source: str, started: float, rules: RuleSettings = CATALOG_SETTINGS
) -> RunRecord:
    """Return a record of kind "rdma gray-loss"; `started` is `time.perf_counter` at the start."""
    alpha, least_loss = (rules.threshold(LOSSY_LINK, name) for name in ("false_alarms", "least_loss"))
    report = find_lossy_links(counts, alpha=alpha, least_loss=least_loss)
    checks = _check(report)
    rows = [
        {
            "links": "; ".join(lossy.links),
            "loss_fraction": lossy.loss_fraction,
            "error_fraction": lossy.error_fraction,
            "expected_packets": lossy.packets,
        }
        for lossy in report.lossy
    ]
    return RunRecord(
        kind=KIND,
        run={
            "configuration": {"source": source},
            "outcome": {
                "num_links": report.num_links,
                "num_unseen_links": report.num_unseen,
                "num_flows": counts.num_flows,
                "num_paths": len(counts.flow_P),
                "knows_sent": counts.knows_sent,
                "dispersion_factor": report.dispersion,
                "background_fraction": report.background_fraction,
                "least_loss_seen_fraction": least_loss_seen(report),
            },
            **describe_run(seed=0, started=started),
            "notes": list(_notes(report, counts)),
        },
        tables={"lossy_links": to_columns("lossy_links", rows)},
        findings=checks.findings,
        checks=checks.checks,
    )


def least_loss_seen(report: LossReport) -> float:
    """Return the loss that is found in nine of ten counts like these, on the link that carries least; 1 for none."""
    if not report.least_packets:
        return 1.0
    deviations = report.limit + NormalDist().inv_cdf(POWER)
    return float(min(1.0, deviations * (report.dispersion / report.least_packets) ** 0.5))


def _check(report: LossReport) -> CheckReport:
    num_seen = report.num_links - report.num_unseen
    if not num_seen:
        return skip_check(LOSSY_LINK.id, f"{report.num_links} links", "all paths of every flow share all their links")
    findings = (
        LOSSY_LINK.finding(
            entity=" or ".join(lossy.links),
            actual=f"{lossy.loss_fraction:.2%} of {lossy.packets:,} packets missing, "
            f"{lossy.deviations:.1f} standard deviations",
            expected=f"within {report.limit:.1f} standard deviations of even spraying",
            confidence=Confidence.MEASURED,
            evidence=("table lossy_links",),
        )
        for lossy in report.lossy
    )
    return run_check(LOSSY_LINK.id, f"{num_seen} links", findings, expected="even spraying", actual="all within chance")


def _notes(report: LossReport, counts: PathCounts) -> Iterator[str]:
    if not counts.knows_sent:
        yield EVEN_SPRAYING
        yield f"losses below {least_loss_seen(report):.2%} on the link with fewest packets may be missed: count longer"
    if report.num_unseen:
        yield f"links that all paths of their flows share, of which these counts say nothing: {report.num_unseen}"
