"""JUnit files: a check is a test, and what fails is what sets exit code 1."""

from dataclasses import replace
from pathlib import Path

from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_files.junit import junit_text
from fabrictune.foundation.finding_rules.catalog import find_rule
from fabrictune.foundation.findings import Confidence, Finding, Severity
from fabrictune.foundation.xml_documents import Element, parse_xml


def found(entity: str, severity: Severity = Severity.ERROR) -> Finding:
    """Return a finding of the rule on isolated nodes."""
    rule = find_rule("fabric.isolated-node")
    assert rule is not None
    finding = rule.finding(
        entity=entity, actual="no link", expected="a link", confidence=Confidence.CONFIGURED, evidence=("x",)
    )
    return replace(finding, severity=severity)


def suite_of(report: CheckReport, least: Severity | None = Severity.ERROR) -> Element:
    """Return the suite of a report's file."""
    text = junit_text(report.findings, report.checks or (), "fabrictune topo validate a\x1b b", least)
    (suite,) = parse_xml(text, Path("junit.xml")).root.each("testsuite")
    return suite


def test_a_check_is_a_test() -> None:
    """One that found, one that passed, one that did not run; the suite has their numbers."""
    report = join_reports(
        run_check("fabric.isolated-node", "12 nodes", [found("leaf3"), found("leaf4")]),
        run_check("fabric.rail-miscabled", "30 cables", []),
        skip_check("fabric.unequal-rate", "rates", "none known"),
    )
    suite = suite_of(report)
    assert {name: suite.attributes[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    assert suite.attributes["name"] == r"fabrictune topo validate a\x1b b"
    assert [case.attributes["name"] for case in suite.children] == ["12 nodes", "30 cables", "rates"]
    failure = suite.children[0].children[0]
    assert failure.attributes["message"] == "2 findings"
    assert "error: leaf3: no link; expected a link" in failure.text
    assert suite.children[2].children[0].attributes["message"] == "none known"


def test_below_the_severity_of_exit_code_1_nothing_fails() -> None:
    """A warning is the test's output; with --fail-on never, so is an error."""
    warned = run_check("fabric.isolated-node", "nodes", [found("leaf3", Severity.WARNING)])
    assert suite_of(warned).attributes["failures"] == "0"
    assert "warning: leaf3" in suite_of(warned).children[0].text_of("system-out")
    failed = run_check("fabric.isolated-node", "nodes", [found("leaf3")])
    assert suite_of(failed, None).attributes["failures"] == "0"


def test_findings_without_a_check_are_tests_too() -> None:
    """A record of an earlier version has findings and does not say what was checked."""
    suite = suite_of(CheckReport(findings=(found("leaf3"),)))
    assert (suite.attributes["tests"], suite.attributes["failures"]) == ("1", "1")
