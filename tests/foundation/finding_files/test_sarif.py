"""SARIF files: every finding and check in them, and places where they are known."""

import json
from typing import Any

from fabrictune.foundation.checks import Check, CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_files.sarif import sarif_text
from fabrictune.foundation.finding_rules.catalog import find_rule
from fabrictune.foundation.findings import Confidence, Finding


def found(entity: str, *evidence: str) -> Finding:
    """Return a finding of the rule on isolated nodes."""
    rule = find_rule("fabric.isolated-node")
    assert rule is not None
    return rule.finding(
        entity=entity, actual="no link", expected="a link", confidence=Confidence.CONFIGURED, evidence=evidence
    )


def run_of(report: CheckReport) -> dict[str, Any]:
    """Return the one run of a report's file."""
    document = json.loads(sarif_text(report.findings, report.checks or (), "fabrictune topo validate a b"))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return dict(run)


def test_a_finding_points_at_its_file_and_line() -> None:
    """The first evidence that names a file and a line is the place; spaces and letters of others are quoted."""
    report = run_check(
        "fabric.isolated-node", "2 nodes", [found("leaf3", "seen twice", "cfg/ä leaf.xml", "cfg/leaf3.json:17: x")]
    )
    (result,) = run_of(report)["results"]
    place = result["locations"][0]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "cfg/leaf3.json"}, "region": {"startLine": 17}}
    assert place["logicalLocations"] == [{"fullyQualifiedName": "leaf3"}]
    assert (result["kind"], result["level"]) == ("fail", "error")
    assert "leaf3: no link; expected a link. Next: " in result["message"]["text"]


def test_times_and_ratios_are_no_places() -> None:
    """A clock time, a port of an address and a ratio look like a line number, and are none."""
    report = run_check(
        "fabric.isolated-node", "nodes", [found("leaf3", "10:30:15 down", "tier 2:1", "10.0.0.1:4791", "leaf1.site:22")]
    )
    (result,) = run_of(report)["results"]
    assert "physicalLocation" not in result["locations"][0]


def test_checks_that_passed_or_did_not_run_are_told() -> None:
    """A pass says what was looked at; what did not run is open, with its reason."""
    passed = run_check("fabric.isolated-node", "12 nodes", [], actual="a link each", expected="a link")
    run = run_of(join_reports(passed, skip_check("fabric.rail-miscabled", "cables", "one table only")))
    assert [(one["kind"], one["level"], one["message"]["text"]) for one in run["results"]] == [
        ("pass", "none", "12 nodes: a link each; expected a link"),
        ("open", "none", "cables: one table only"),
    ]


def test_findings_that_a_record_does_not_keep_are_counted() -> None:
    """Its true number is a notification."""
    check = Check(rule="fabric.isolated-node", subject="nodes", num_found=12_000)
    run = run_of(CheckReport(checks=(check,), findings=(found("leaf3"),)))
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"] == "fabric.isolated-node: 12,000 findings, of which this file has 1"
