"""Findings on the command line: printed gravest first, and turned into the exit code."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from fabrictune.cli.output import print_lines
from foundation.records import Finding, Severity

HAS_FINDINGS = 1


def exit_code(findings: Iterable[Finding], fail_on: str) -> int:
    """Return 1 if a finding is at or above the severity `fail_on`, else 0."""
    if fail_on == "never":
        return 0
    least = Severity(fail_on).rank
    return HAS_FINDINGS if any(finding.severity.rank >= least for finding in findings) else 0


def print_findings(findings: Sequence[Finding], *, at_most: int = 10) -> None:
    """Print the gravest findings in full, and how many there are besides."""
    gravest = sorted(findings, key=lambda finding: -finding.severity.rank)
    for finding in gravest[:at_most]:
        print_lines(
            [
                f"{finding.severity.value}: {finding.entity}: {finding.actual} ({finding.id})",
                f"  expected: {finding.expected}",
                f"  next: {finding.next_step}",
            ]
        )
    if len(gravest) > at_most:
        print_lines([f"... and {len(gravest) - at_most} more findings in the record"])


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON values."""
    return [asdict(finding) for finding in findings]
