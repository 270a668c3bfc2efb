"""Trials of retransmission timers as a run record: table `trials`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from fabrictune.foundation.checks import join_reports, run_check
from fabrictune.foundation.finding_rules.rdma import PARTIAL, TIMERS_OFF
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import PS_PER_NS, format_duration, format_fraction
from fabrictune.rdma_bench.measurement.timers import MeasuredTimers, TimerPlan
from fabrictune.rdma_bench.timers.prediction import predict_retransmission
from fabrictune.rdma_bench.timers.profiles import TimerProfile
from fabrictune.rdma_bench.timers.trials import FOR_GOOD, NONE, TimerTrial

KIND = "rdma timers measure"
SEED = 0  # nothing here is drawn at random


def make_timer_record(
    measured: MeasuredTimers,
    plan: TimerPlan,
    profile: TimerProfile,
    *,
    place: str,
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return the record; `place` says where the workers were, `started` what `time.perf_counter` said at the start."""
    configuration = {**asdict(plan), "device": measured.device, "place": place, "profile": profile.name}
    how_far = {"is_partial": bool(measured.stopped), "stopped": measured.stopped}
    trials = {"num_trials": len(measured.trials), "num_planned": plan.num_trials, "uncertain": list(measured.uncertain)}
    table = _table(measured.trials, profile)
    limit = rules.threshold(TIMERS_OFF, "deviation")
    record = RunRecord(
        kind=KIND,
        run=describe_run(seed=SEED, started=started, configuration=configuration, **how_far, **trials),
        tables={"trials": table},
    )
    return record.with_checks(
        join_reports(
            run_check(
                PARTIAL.id,
                f"{plan.num_trials:,} trials planned",
                _is_partial(measured, plan),
                expected="all trials done",
                actual="all",
            ),
            run_check(
                TIMERS_OFF.id,
                f"{len(measured.trials):,} trials",
                _are_off(table, profile, limit),
                expected=f"the times of {profile.name} within {format_fraction(limit)}",
            ),
        )
    )


def _table(trials: tuple[TimerTrial, ...], profile: TimerProfile) -> Columns:
    rows = [
        {
            "timeout": trial.spec.timeout_exponent,
            "retries": trial.spec.retries,
            "cut_ns": trial.cut_ns,
            "status": trial.status,
            "after_ns": trial.after_ns,
            "model_ns": _model_ns(trial, profile),
            "retransmissions": trial.num_retransmissions,
        }
        for trial in trials
    ]
    return to_columns("trials", rows)


def _model_ns(trial: TimerTrial, profile: TimerProfile) -> int:
    if trial.spec.retries < profile.timers.fewest_retries:
        return NONE
    prediction = predict_retransmission(trial.spec, profile)
    time_ns = prediction.gives_up_ns if trial.cut_ns == FOR_GOOD else prediction.resumes_ns(trial.cut_ns)
    return NONE if np.isinf(time_ns) else round(time_ns)


def _is_partial(measured: MeasuredTimers, plan: TimerPlan) -> Iterator[Finding]:
    if measured.stopped:
        yield PARTIAL.finding(
            entity=measured.device,
            expected=f"{plan.num_trials} trials",
            actual=f"stopped after {len(measured.trials)}: {measured.stopped}",
            confidence=Confidence.MEASURED,
        )


def _are_off(table: Columns, profile: TimerProfile, limit: float) -> Iterator[Finding]:
    """Yield the setting that is furthest from the model, of the trials in which the path stayed dead."""
    is_compared = (table["cut_ns"] == FOR_GOOD) & (table["model_ns"] > 0) & (table["status"] > 0)
    off = np.where(is_compared, np.abs(table["after_ns"] / np.where(is_compared, table["model_ns"], 1) - 1), 0.0)
    row = int(np.argmax(off))
    if off[row] > limit:
        times: dict[str, Any] = {name: format_duration(int(table[name][row]) * PS_PER_NS) for name in table}
        yield TIMERS_OFF.finding(
            entity=f"timeout {table['timeout'][row]}, retries {table['retries'][row]}",
            expected=f"{times['model_ns']} by profile {profile.name}",
            actual=f"queue pair failed after {times['after_ns']}",
            confidence=Confidence.MEASURED,
            evidence=(f"table trials, row {row}; {int((off > limit).sum())} such rows in total",),
        )
