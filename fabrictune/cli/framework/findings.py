"""Findings on the command line, by the site's rules: printed gravest first beside what was checked, and the exit code.

The first findings of each rule are shown beside their true number, so that no rule hides another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import click

from fabrictune.cli.framework.findings_files import write_findings_files
from fabrictune.cli.framework.options import ALL_FINDINGS
from fabrictune.cli.framework.output import print_lines
from fabrictune.cli.framework.rules import print_rules, rules_json, site_rules
from fabrictune.foundation.checks import Check, Result, count_checks
from fabrictune.foundation.finding_rules.reference_page import reference
from fabrictune.foundation.finding_rules.simulation import EXPECTATION
from fabrictune.foundation.findings import Finding, Severity

HAS_FINDINGS = 1
MAX_SHOWN = 20  # findings of a rule
MAX_WITH_EVIDENCE = 3  # of these, those with their evidence


class Judged(Protocol):
    """A record or a report: findings, and the checks that made them, None where nobody said."""

    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def checks(self) -> tuple[Check, ...] | None: ...


def conclude(fail_on: str, *judged: Judged) -> int:
    """Return 1 if a finding is at or above the severity `fail_on`, else 0; writes the files of `--findings-file`."""
    least = None if fail_on == "never" else Severity(fail_on)
    findings = [finding for one in judged for finding in site_rules().apply(one.findings)]
    checks = [check for one in judged for check in site_rules().apply_to_checks(one.checks or ())]
    write_findings_files(findings, checks, least)
    return HAS_FINDINGS if least and any(finding.severity.rank >= least.rank for finding in findings) else 0


def print_findings(judged: Judged) -> None:
    """Print the first findings of each rule, the gravest first, what to do about them, and what was checked.

    With --all-findings every finding that the record keeps is printed, with all of its evidence.
    """
    context = click.get_current_context(silent=True)
    shows_all = context is not None and bool(context.meta.get(ALL_FINDINGS))
    next_steps: dict[str, None] = {}
    for rule, findings in _by_rule(site_rules().apply(judged.findings)).items():
        shown = findings if shows_all else findings[:MAX_SHOWN]
        for number, finding in enumerate(shown):
            print_lines([finding_line(finding)])
            if shows_all or number < MAX_WITH_EVIDENCE:
                print_lines(f"    {line}" for line in finding.evidence)
            next_steps[finding.next_step] = None
        num_found = max(len(findings), _num_found(rule, judged.checks))
        if num_found > len(shown):
            where = "the record has no more" if shows_all else "--all-findings prints them"
            print_lines([f"... and {num_found - len(shown):,} more of {rule}, {num_found:,} in total; {where}"])
    print_lines(f"next: {step}" for step in next_steps)
    if next_steps:
        print_lines(["about a rule: fabrictune rules ID"])
    print_checks(judged.checks)
    print_rules()


def print_checks(checks: Sequence[Check] | None) -> None:
    """Print expectations that are met with their values, how the checks ended, and those that did not run."""
    checks = None if checks is None else site_rules().apply_to_checks(checks)
    for check in checks or ():
        if EXPECTATION.covers(check.rule) and check.result == Result.PASSED:
            print_lines([f"met: {check.subject}: {check.actual}; expected {check.expected}"])
    print_lines([count_checks(checks)])
    for check in checks or ():
        if check.result == Result.NOT_RUN:
            print_lines([f"    not run: {check.rule}: {check.reason}"])


def finding_line(finding: Finding) -> str:
    """Return a finding as one line: `error: leaf3: no link; expected at least one link [fabric.isolated-node]`."""
    return f"{finding.severity.value}: {finding.entity}: {finding.actual}; expected {finding.expected} [{finding.id}]"


def judged_json(judged: Judged) -> dict[str, Any]:
    """Return all findings and checks as JSON values, null for checks where nobody said what was checked.

    With a site file its settings are under `rules`.
    """
    checks = judged.checks
    shown = None if checks is None else [check.as_json() for check in site_rules().apply_to_checks(checks)]
    return {"findings": findings_json(judged.findings), "checks": shown, **rules_json()}


def findings_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON values, each with the place that documents its rule."""
    return [{**asdict(finding), "reference": reference(finding.id)} for finding in site_rules().apply(findings)]


def _by_rule(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return the findings of each rule, the rule with the gravest first, in each the gravest first."""
    gravest = sorted(findings, key=lambda finding: -finding.severity.rank)
    rules: dict[str, list[Finding]] = {}
    for finding in gravest:
        rules.setdefault(finding.id, []).append(finding)
    return rules


def _num_found(rule: str, checks: Sequence[Check] | None) -> int:
    return sum(check.num_found for check in checks or () if check.rule == rule)
