"""Findings and checks as SARIF, which code-scanning pages of GitHub, GitLab and Azure show.

A finding is a result of kind `fail`, a check that passed one of kind `pass`, and one that did not run `open`, with its
reason. A finding whose evidence names a file and a line points there; every finding names its entity.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) version 2.1.0.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from fabrictune.foundation.checks import Check, Result
from fabrictune.foundation.finding_rules.catalog import find_rule
from fabrictune.foundation.finding_rules.reference_page import reference
from fabrictune.foundation.findings import Finding, Severity
from fabrictune.foundation.records import installed_version

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error", Severity.CRITICAL: "error"}
ENDINGS = "cfg|conf|csv|env|graphml|ini|json|jsonl|log|lldp|out|py|txt|xml|ya?ml"  # `leaf1.site:22` is a port of a host
PLACE = re.compile(rf"(?P<file>[^\s:]+\.(?:{ENDINGS})|[^\s:]*/[^\s:]+):(?P<line>[1-9]\d{{0,8}})(?::|\s|$)")
KINDS = {Result.PASSED: "pass", Result.NOT_RUN: "open"}


def sarif_text(findings: Sequence[Finding], checks: Sequence[Check], command: str) -> str:
    """Return findings and checks of a command line as a SARIF file."""
    ids = list(dict.fromkeys([*(finding.id for finding in findings), *(check.rule for check in checks)]))
    driver = {
        "name": "fabrictune",
        "version": installed_version("fabrictune"),
        "rules": [_rule(rule_id) for rule_id in ids],
    }
    results = [*map(_found, findings), *_others(checks)]
    for result in results:
        result["ruleIndex"] = ids.index(result["ruleId"])
    invocation = {
        "commandLine": command,
        "executionSuccessful": True,
        "toolExecutionNotifications": list(_left_out(findings, checks)),
    }
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(rule_id: str) -> dict[str, Any]:
    rule = find_rule(rule_id)
    if rule is None:  # of a record that another version wrote
        return {"id": rule_id}
    return {
        "id": rule_id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.meaning} {rule.impact}"},
        "help": {"text": f"{rule.next_step}. {reference(rule_id)}"},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _found(finding: Finding) -> dict[str, Any]:
    text = f"{finding.entity}: {finding.actual}; expected {finding.expected}. Next: {finding.next_step}"
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": finding.entity}]}
    place = next(filter(None, map(PLACE.match, finding.evidence)), None)
    if place is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(place["file"])},
            "region": {"startLine": int(place["line"])},
        }
    return {
        "ruleId": finding.id,
        "kind": "fail",
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [location],
        "properties": {
            "severity": finding.severity.value,
            "confidence": finding.confidence.value,
            "evidence": list(finding.evidence),
        },
    }


def _others(checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    """Yield the checks without findings."""
    for check in checks:
        if check.result in KINDS:
            said = check.reason or "; expected ".join(filter(None, (check.actual, check.expected)))
            text = ": ".join(filter(None, (check.subject, said)))
            yield {"ruleId": check.rule, "kind": KINDS[check.result], "level": "none", "message": {"text": text}}


def _left_out(findings: Sequence[Finding], checks: Sequence[Check]) -> Iterator[dict[str, Any]]:
    """Yield a notification for each rule that found more than the record keeps."""
    for rule_id in dict.fromkeys(check.rule for check in checks):
        num_found = sum(check.num_found for check in checks if check.rule == rule_id)
        num_kept = sum(finding.id == rule_id for finding in findings)
        if num_found > num_kept:
            text = f"{rule_id}: {num_found:,} findings, of which this file has {num_kept:,}"
            yield {"level": "warning", "message": {"text": text}}
