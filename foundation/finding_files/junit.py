"""Findings and checks as a JUnit file, which Jenkins, GitLab and most CI systems show as tests.

A check is a test: its class is the rule, its name what was looked at. It fails if it has a finding at or above the
severity that sets exit code 1, and is skipped, with the reason, if it did not run. Findings below are its output. Where
a rule has looked at several subjects, the first that found something has the findings of all.

Source: the JUnit format of Apache Ant, as Jenkins' xUnit plugin describes it (junit-10.xsd).
"""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from fabrictune.foundation.checks import Check, Result, found_checks
from fabrictune.foundation.findings import Finding, Severity
from fabrictune.foundation.visible_text import printable


def junit_text(findings: Sequence[Finding], checks: Sequence[Check], command: str, least: Severity | None) -> str:
    """Return findings and checks of a command line as a JUnit file; below `least`, or at None, no finding fails."""
    waiting: dict[str, list[Finding]] = {}
    for finding in findings:
        waiting.setdefault(finding.id, []).append(finding)
    suite = ElementTree.Element("testsuite", name=printable(command))
    for check in checks:
        _add_case(suite, check, waiting.pop(check.rule, ()) if check.num_found else (), least)
    for check in found_checks("findings", [finding for rest in waiting.values() for finding in rest]).checks:
        _add_case(suite, check, waiting[check.rule], least)
    for name, tag in {"tests": ".", "failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _add_case(suite: ElementTree.Element, check: Check, findings: Sequence[Finding], least: Severity | None) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=printable(check.rule), name=printable(check.subject), time="0"
    )
    if check.result == Result.NOT_RUN:
        ElementTree.SubElement(case, "skipped", message=printable(check.reason))
        return
    failing = [finding for finding in findings if least is not None and finding.severity.rank >= least.rank]
    others = [finding for finding in findings if finding not in failing]
    if failing:
        failure = ElementTree.SubElement(case, "failure", message=_count(check), type=printable(check.rule))
        failure.text = _lines(failing)
    if others:
        ElementTree.SubElement(case, "system-out").text = _lines(others)


def _count(check: Check) -> str:
    expected = f"; expected {check.expected}" if check.expected else ""
    return printable(f"{check.num_found:,} {'finding' if check.num_found == 1 else 'findings'}{expected}")


def _lines(findings: Iterable[Finding]) -> str:
    lines = []
    for finding in findings:
        lines.append(f"{finding.severity.value}: {finding.entity}: {finding.actual}; expected {finding.expected}")
        lines += [f"    {evidence}" for evidence in finding.evidence]
        lines.append(f"    next: {finding.next_step}")
    return printable("\n".join(lines))
