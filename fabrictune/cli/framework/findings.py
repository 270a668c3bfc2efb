"""Findings on the command line: printed gravest first, and turned into the exit code."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from fabrictune.cli.framework.output import print_lines
from fabrictune.foundation.records import Finding, Severity

HAS_FINDINGS = 1


def exit_code(findings: Iterable[Finding], fail_on: str) -> int:
    """Return 1 if a finding is at or above the severity `fail_on`, else 0."""
    if fail_on == "never":
        return 0
    least = Severity(fail_on).rank
    return HAS_FINDINGS if any(finding.severity.rank >= least for finding in findings) else 0


def print_findings(findings: Sequence[Finding], *, at_most: int = 10) -> None:
    """Print the gravest findings with their evidence, then what to do about them, each advice once."""
    gravest = sorted(findings, key=lambda finding: -finding.severity.rank)
    shown = gravest[:at_most]
    for finding in shown:
        print_lines([f"{finding.severity.value}: {finding.entity}: {finding.actual}, expected {finding.expected}"])
        print_lines(f"    {line}" for line in finding.evidence)
    if len(gravest) > at_most:
        print_lines([f"... and {len(gravest) - at_most} more in the record"])
    print_lines(f"next: {step}" for step in dict.fromkeys(finding.next_step for finding in shown))


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON values."""
    return [asdict(finding) for finding in findings]
