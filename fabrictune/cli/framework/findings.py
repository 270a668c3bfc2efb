"""Findings on the command line: printed gravest first, and turned into the exit code, all by the site's rules."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from fabrictune.cli.framework.output import print_lines
from fabrictune.cli.framework.rules import print_rules, site_rules
from fabrictune.foundation.finding_rules.reference_page import reference
from fabrictune.foundation.findings import Finding, Severity

HAS_FINDINGS = 1


def exit_code(findings: Iterable[Finding], fail_on: str) -> int:
    """Return 1 if a finding is at or above the severity `fail_on`, else 0."""
    if fail_on == "never":
        return 0
    least = Severity(fail_on).rank
    return HAS_FINDINGS if any(finding.severity.rank >= least for finding in site_rules().apply(findings)) else 0


def print_findings(findings: Sequence[Finding], *, at_most: int = 10) -> None:
    """Print the gravest findings with their evidence, what to do about them, each advice once, and the site's rules."""
    gravest = sorted(site_rules().apply(findings), key=lambda finding: -finding.severity.rank)
    shown = gravest[:at_most]
    for finding in shown:
        print_lines([finding_line(finding)])
        print_lines(f"    {line}" for line in finding.evidence)
    if len(gravest) > at_most:
        print_lines([f"... and {len(gravest) - at_most} more in the record"])
    print_lines(f"next: {step}" for step in dict.fromkeys(finding.next_step for finding in shown))
    if shown:
        print_lines(["about a rule: fabrictune rules ID"])
    print_rules()


def finding_line(finding: Finding) -> str:
    """Return a finding as one line: `error: leaf3: no link; expected at least one link [fabric.isolated-node]`."""
    return f"{finding.severity.value}: {finding.entity}: {finding.actual}; expected {finding.expected} [{finding.id}]"


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON values, each with the place that documents its rule."""
    return [{**asdict(finding), "reference": reference(finding.id)} for finding in site_rules().apply(findings)]
