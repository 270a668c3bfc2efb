"""A validation as a run record: every stage, every measurement beside its prediction, and all findings."""

from collections.abc import Mapping, Sequence
from typing import Any

from fabrictune.foundation.checks import CheckReport, join_reports
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.validate.cluster.results import StageResult
from fabrictune.validate.cluster.validation import STAGES, Validation

KIND = "validate cluster"
SEED = 0
NOT_RUN = "not run"


def cluster_record(
    validation: Validation, plan: Mapping[str, Any], compared: Sequence[CheckReport] = (), *, started: float
) -> RunRecord:
    """Return the record, with comparisons with others; `started` is what `time.perf_counter` said at the start."""
    results = list(validation.results.values())
    run = describe_run(seed=SEED, started=started, configuration=dict(plan))
    record = RunRecord(
        kind=KIND,
        run={**run, "is_partial": validation.is_stopped, "notes": _notes(results)},
        tables={
            "cluster_stages": to_columns("cluster_stages", [_stage(name, validation) for name in STAGES]),
            "cluster_measurements": to_columns("cluster_measurements", measurement_rows(results)),
        },
    )
    return record.with_checks(join_reports(*compared, *(result.report for result in results)))


def measurement_rows(results: Sequence[StageResult]) -> list[dict[str, Any]]:
    """Return the rows of the table of measurements."""
    return [
        {"stage": result.name, **vars(one), "verdict": one.verdict.value}
        for result in results
        for one in result.measurements
    ]


def _stage(name: str, validation: Validation) -> dict[str, Any]:
    result = validation.results.get(name)
    if result is None:
        return {"stage": name, "state": NOT_RUN, "reason": "", "wall_s": 0.0}
    return {"stage": name, "state": result.state.value, "reason": result.reason, "wall_s": result.wall_s}


def _notes(results: Sequence[StageResult]) -> list[str]:
    return [f"{result.name}: {note}" for result in results for note in result.notes]
