"""Checks of a record: what was looked at, what was expected, and the result.

A finding says what is wrong; a check says that somebody looked. "No findings" is worth as much as the checks behind it,
so whatever makes findings makes them through a check, with the true number of what it found. A check that lacks what
it needs did not run and says why: it has not passed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Self

from fabrictune.foundation.findings import Finding

MAX_FINDINGS = 10_000  # of one check that a record keeps; the check has their true number
UNSAID = "this record does not say what was checked"


class Result(StrEnum):
    """Result of a check."""

    PASSED = "passed"
    FOUND = "found"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One rule applied to one subject."""

    rule: str  # id of the findings that it makes
    subject: str  # what was looked at, with its number: "443 loaded link directions"
    expected: str = ""
    actual: str = ""  # what was seen where nothing was found
    num_found: int = 0  # findings made, also those beyond what the record keeps
    reason: str = ""  # for which it did not run

    @property
    def result(self) -> Result:
        """Whether it passed, found something, or did not run."""
        if self.reason:
            return Result.NOT_RUN
        return Result.FOUND if self.num_found else Result.PASSED

    def as_json(self) -> dict[str, Any]:
        """Return the check as JSON values, its result among them."""
        return {**vars(self), "result": self.result.value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the check that `as_json` wrote; raises TypeError or KeyError for anything else."""
        texts = {name: values[name] for name in ("rule", "subject", "expected", "actual", "reason")}
        num_found = values["num_found"]
        if not all(isinstance(text, str) for text in texts.values()) or type(num_found) is not int or num_found < 0:
            raise TypeError("a check with a value of another type")
        return cls(**texts, num_found=num_found)


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """Checks, and the findings that they made."""

    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __add__(self, other: "CheckReport") -> "CheckReport":
        return CheckReport(checks=(*self.checks, *other.checks), findings=(*self.findings, *other.findings))


def run_check(
    rule: str, subject: str, findings: Iterable[Finding | None], *, expected: str = "", actual: str = ""
) -> CheckReport:
    """Return a check that ran, with what it found, at most MAX_FINDINGS; None is no finding.

    `actual` is what was seen where nothing was found.
    """
    found = (finding for finding in findings if finding is not None)
    kept = tuple(islice(found, MAX_FINDINGS))
    assert all(finding.id == rule for finding in kept), f"a finding of another rule than {rule}"
    num_found = len(kept) + sum(1 for _ in found)
    seen = "" if num_found else actual
    check = Check(rule=rule, subject=subject, expected=expected, actual=seen, num_found=num_found)
    return CheckReport(checks=(check,), findings=kept)


def run_checks(rules: Iterable[str], subject: str, findings: Iterable[Finding]) -> CheckReport:
    """Return the checks of several rules that looked at one subject, each with its own of the findings."""
    of_rule: dict[str, list[Finding]] = {rule: [] for rule in rules}
    for finding in findings:
        of_rule[finding.id].append(finding)
    return join_reports(*(run_check(rule, subject, found) for rule, found in of_rule.items()))


def found_checks(subject: str, findings: Sequence[Finding]) -> CheckReport:
    """Return the checks of findings whose maker says no more than what it found."""
    return run_checks(dict.fromkeys(finding.id for finding in findings), subject, findings)


def skip_check(rule: str, subject: str, reason: str) -> CheckReport:
    """Return a check that could not run."""
    return CheckReport(checks=(Check(rule=rule, subject=subject, reason=reason),))


def join_reports(*reports: CheckReport) -> CheckReport:
    """Return all checks and findings in order."""
    return CheckReport(
        checks=tuple(check for report in reports for check in report.checks),
        findings=tuple(finding for report in reports for finding in report.findings),
    )


def count_findings(checks: Sequence[Check]) -> str:
    """Return "no findings" or "94 findings", also those that a record does not keep."""
    num_found = sum(check.num_found for check in checks)
    return f"{num_found:,} {'finding' if num_found == 1 else 'findings'}" if num_found else "no findings"


def count_checks(checks: Sequence[Check] | None) -> str:
    """Return "12 checks: 10 passed, 1 found something, 1 not run"; None stands for a record without checks."""
    if checks is None:
        return UNSAID
    if not checks:
        return "no checks"
    names = {Result.PASSED: "passed", Result.FOUND: "found something", Result.NOT_RUN: "not run"}
    counts = {result: sum(check.result == result for check in checks) for result in Result}
    counted = ", ".join(f"{counts[result]:,} {name}" for result, name in names.items() if counts[result])
    return f"{len(checks):,} {'check' if len(checks) == 1 else 'checks'}: {counted}"
