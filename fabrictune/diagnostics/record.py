"""A diagnosis as a run record."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fabrictune.diagnostics.checks import blamed_ranks, check_diagnosis
from fabrictune.diagnostics.diagnosis import Diagnosis
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.hardware.profile import HardwareProfile

KIND = "train diagnose"
NO_VALUE = -1.0


def make_diagnosis_record(
    diagnosis: Diagnosis,
    *,
    started: float,
    hardware: HardwareProfile | None = None,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return a record of kind "train diagnose"; `started` is `time.perf_counter` at the start."""
    report = check_diagnosis(diagnosis, hardware=hardware, rules=rules)
    bisection = diagnosis.bisection
    outcome = {
        "elapsed_s": diagnosis.elapsed_s,
        "expected_s": diagnosis.plan.expected_s,
        "num_ranks": diagnosis.plan.num_ranks,
        "bad_ranks": blamed_ranks(report.findings, diagnosis),
        "num_bisection_rounds": len(bisection.rounds) if bisection else 0,
        "num_false_alarms": len(bisection.false_alarms) if bisection else 0,
    }
    return RunRecord(
        kind=KIND,
        run={
            "configuration": {
                "tests": [asdict(test) for test in diagnosis.plan.tests],
                "hardware": hardware.name if hardware else None,
            },
            "outcome": outcome,
            **describe_run(seed=0, started=started),
            "notes": list(_notes(diagnosis)),
        },
        tables={
            "diagnosed_nodes": to_columns("diagnosed_nodes", list(_node_rows(diagnosis))),
            "diagnosed_groups": to_columns("diagnosed_groups", list(_group_rows(diagnosis))),
        },
        findings=report.findings,
        checks=report.checks,
    )


def _notes(diagnosis: Diagnosis) -> Iterator[str]:
    for test, reason in diagnosis.left_out.items():
        yield f"{test}: left out: {reason}"
    reasons: dict[tuple[str, str], int] = {}
    for (test, _), result in diagnosis.results.items():
        if result.skipped:
            reasons[test, result.skipped] = reasons.get((test, result.skipped), 0) + 1
    for (test, reason), count in reasons.items():
        yield f"{test}: skipped: {reason}" + (f" ({count} hosts)" if count > 1 else "")
    for group in diagnosis.bisection.false_alarms if diagnosis.bisection else ():
        ranks = ", ".join(map(diagnosis.label, group))
        yield f"bisection: {ranks} failed once and passed when tested again: nobody is named for it"


def _node_rows(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    for (test, rank), result in diagnosis.results.items():
        facts = diagnosis.ranks.get(rank)
        for figure, value in (result.figures or {"": NO_VALUE}).items():
            yield {
                "rank": rank,
                "host": facts.host if facts else "",
                "test": test,
                "figure": figure,
                "value": value,
                "digest": result.digest,
                "kind": result.kind,
                "fault": "; ".join(result.faults),
                "skipped": result.skipped,
                "elapsed_s": result.elapsed_s,
            }


def _group_rows(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    for group in diagnosis.groups:
        yield {
            "test": group.test,
            "round": group.round,
            "ranks": " ".join(map(str, group.ranks)),
            "rate_bps": group.rate_bps,
            "fault": "; ".join(group.faults),
        }
