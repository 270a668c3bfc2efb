"""A check passes only where it ran, counts all it found, and is read back as it was written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.checks import (
    MAX_FINDINGS,
    UNSAID,
    Check,
    CheckReport,
    Result,
    count_checks,
    join_reports,
    run_check,
    skip_check,
)
from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import Confidence, Finding, RunRecord, Severity

FINDING = Finding(
    id="ecmp.link-overloaded",
    severity=Severity.ERROR,
    entity="a:1 -> b:1",
    expected="at most 400 Gbps",
    actual="800 Gbps",
    next_step="place them elsewhere",
    confidence=Confidence.PREDICTED,
)
PASSED = run_check("netsim.pfc-deadlock", "8 ports", (), expected="no cycle of paused ports", actual="none")
FOUND = run_check(FINDING.id, "12 loaded links", [FINDING, None, FINDING], expected="at most the rate")
NOT_RUN = skip_check("expect.*", "the scenario's expectations", "the scenario has none")


def test_a_check_that_could_not_run_has_not_passed() -> None:
    """Unknown never passes: the result of one without a finding depends on whether it ran."""
    results = [check.result for check in join_reports(PASSED, FOUND, NOT_RUN).checks]
    assert results == [Result.PASSED, Result.FOUND, Result.NOT_RUN]


def test_a_check_counts_what_the_record_does_not_keep() -> None:
    """10,000 findings are kept of 10,003; None is no finding."""
    report = run_check(FINDING.id, "links", [None, *[FINDING] * (MAX_FINDINGS + 3)])
    (check,), findings = report.checks, report.findings
    assert (check.num_found, len(findings)) == (MAX_FINDINGS + 3, MAX_FINDINGS)


def test_a_finding_of_another_rule_is_a_programming_error() -> None:
    """Else a check could pass while the record has its findings."""
    with pytest.raises(AssertionError, match=r"another rule than netsim\.dropped-packets"):
        run_check("netsim.dropped-packets", "ports", [FINDING])


@pytest.mark.parametrize(
    ("checks", "sentence"),
    [
        ((*PASSED.checks, *FOUND.checks, *NOT_RUN.checks), "3 checks: 1 passed, 1 found something, 1 not run"),
        (PASSED.checks, "1 check: 1 passed"),
        ((), "no checks"),
        (None, UNSAID),
    ],
)
def test_checks_are_counted_in_one_line(checks: tuple[Check, ...] | None, sentence: str) -> None:
    """A record without checks does not say "no checks": it does not say."""
    assert count_checks(checks) == sentence


def test_checks_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """In run.json, with their results; a record without them reads back as one that does not say."""
    report = PASSED + FOUND + NOT_RUN
    record = RunRecord(kind="sim run", run={"seed": 1}, findings=report.findings, checks=report.checks)
    assert RunRecord.read(record.write(tmp_path / "run")) == record
    rows = json.loads((tmp_path / "run" / "run.json").read_text())["checks"]
    assert [(row["rule"], row["result"], row["num_found"]) for row in rows] == [
        ("netsim.pfc-deadlock", "passed", 0),
        ("ecmp.link-overloaded", "found", 2),
        ("expect.*", "not run", 0),
    ]
    assert RunRecord.read(replace(record, checks=None).write(tmp_path / "old")).checks is None


@pytest.mark.parametrize("checks", [7, "x", [7], [{}], [{**PASSED.checks[0].as_json(), "num_found": -1}], {"a": 1}])
def test_checks_that_are_none_are_refused(tmp_path: Path, checks: Any) -> None:
    """A foreign record is read with care."""
    RunRecord(kind="sim run", run={"seed": 1}, checks=()).write(tmp_path / "run")
    head = json.loads((path := tmp_path / "run" / "run.json").read_text())
    path.write_text(json.dumps({**head, "checks": checks}))
    with pytest.raises(RecordError, match=r"run\.json: checks: not checks"):
        RunRecord.read(tmp_path / "run")


def test_reports_add_up() -> None:
    """Checks and findings stay in order."""
    assert join_reports(PASSED, FOUND) == PASSED + FOUND
    assert join_reports() == CheckReport()
