"""The record of a job's effective time."""

from collections.abc import Mapping
from typing import Any

from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.trainer_probe.survival.checks import check_effective
from fabrictune.trainer_probe.survival.effective import EffectiveTime
from fabrictune.trainer_probe.survival.job_time import (
    CODE,
    DECISION,
    DETECTION,
    DOWN,
    KEPT,
    OVERHEAD,
    PARTS,
    RECOMPUTED,
    RESTORE,
    STALL,
    START,
    STOPPED,
    UNKNOWN,
    WAITING,
    JobTime,
)

KIND = "train effective"
COLUMNS = {
    KEPT: "kept_ns",
    RECOMPUTED: "recomputed_ns",
    STALL: "stalls_ns",
    OVERHEAD: "overhead_ns",
    DETECTION: "detection_ns",
    DECISION: "decision_ns",
    DOWN: "down_ns",
    WAITING: "waiting_ns",
    CODE: "code_ns",
    START: "start_ns",
    RESTORE: "restore_ns",
    STOPPED: "stopped_ns",
    UNKNOWN: "unknown_ns",
}


def make_effective_record(
    time: JobTime,
    result: EffectiveTime,
    *,
    name: str,
    journal: str,
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return a record of kind "train effective"; `started` is `time.perf_counter` at the start."""
    record = RunRecord(
        kind=KIND,
        run={
            "name": name,
            "configuration": {"journal": journal, "window_ns": result.windows.width_ns},
            "outcome": outcome(time, result),
            **describe_run(seed=0, started=started),
            "notes": notes(time, result),
        },
        tables={
            "effective_parts": to_columns("effective_parts", _part_rows(result)),
            "effective_outages": to_columns("effective_outages", _outage_rows(time, result)),
            "effective_windows": to_columns("effective_windows", _window_rows(result)),
        },
    )
    return record.with_checks(check_effective(result, rules))


def outcome(time: JobTime, result: EffectiveTime) -> dict[str, Any]:
    """Return the figures of a job."""
    return {
        "effective_fraction": result.effective_fraction,
        "by_iterations_fraction": result.by_iterations_fraction,
        "total_ns": result.total_ns,
        "num_steps": result.num_steps,
        "num_recomputed": result.num_recomputed,
        "median_step_ns": result.median_step_ns,
        "num_outages": len(result.outages),
        "is_finished": time.is_finished,
    }


def notes(time: JobTime, result: EffectiveTime) -> list[str]:
    """Return what is not known, each a sentence."""
    lines = [f"{what}: {count}" if count > 1 else what for what, count in time.gaps.items()]
    if unknown_ns := result.parts_ns[UNKNOWN]:
        lines.append(f"{unknown_ns / result.total_ns:.2%} of the time has no event that explains it")
    return lines


def _part_rows(result: EffectiveTime) -> list[dict[str, Any]]:
    total = max(1, result.total_ns)
    return [
        {"part": part, "duration_ns": result.parts_ns[part], "share_fraction": result.parts_ns[part] / total}
        for part in PARTS
    ]


def _outage_rows(time: JobTime, result: EffectiveTime) -> list[dict[str, Any]]:
    begin_ns = time.periods[0].begin_ns if time.periods else 0
    return [
        {
            "outage": outage.outage.number,
            "begin_ns": outage.outage.begin_ns - begin_ns,
            "cause": outage.outage.cause,
            "entity": outage.outage.entity,
            "generation": outage.outage.generation,
            "num_lost_steps": outage.lost_steps,
            "duration_ns": outage.total_ns,
            **_columns(outage.parts_ns),
        }
        for outage in result.outages
    ]


def _window_rows(result: EffectiveTime) -> list[dict[str, Any]]:
    windows = result.windows
    return [
        {
            "end_ns": int(windows.end_ns_W[number]),
            "cumulative_fraction": float(windows.cumulative_W[number]),
            "sliding_fraction": float(windows.sliding_W[number]),
            **_columns({part: int(times_W[number]) for part, times_W in windows.parts_ns.items()}),
        }
        for number in range(len(windows.end_ns_W))
    ]


def _columns(parts_ns: Mapping[str, int]) -> dict[str, int]:
    return {column: parts_ns.get(part, 0) for part, column in COLUMNS.items()}
