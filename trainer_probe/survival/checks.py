"""Checks of effective time: unexplained time, the interval between saves, and the simulation."""

from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.survival import SAVE_INTERVAL, SIMULATION_DIFFERS, UNKNOWN_TIME
from fabrictune.foundation.findings import Confidence
from fabrictune.foundation.units import PS_PER_S, format_duration
from fabrictune.trainer_probe.survival.effective import EffectiveTime
from fabrictune.trainer_probe.survival.job_time import UNKNOWN
from fabrictune.trainer_probe.survival.plan import SurvivalPlan

ERRORS = 3.0  # of the simulation, standard ones


def check_effective(result: EffectiveTime, rules: RuleSettings = CATALOG_SETTINGS) -> CheckReport:
    """Return the check of a job's unexplained time."""
    share = result.parts_ns[UNKNOWN] / max(1, result.total_ns)
    limit = rules.threshold(UNKNOWN_TIME, "share")
    expected, actual = f"at most {limit:.2%} of the time", f"{share:.2%}"
    finding = UNKNOWN_TIME.finding(
        entity="journal",
        expected=expected,
        actual=actual,
        confidence=Confidence.MEASURED,
        evidence=("table effective_parts",),
    )
    found = [finding] if share > limit else []
    return run_check(UNKNOWN_TIME.id, "time of the job", found, expected=expected, actual=actual)


def check_plan(plan: SurvivalPlan, rules: RuleSettings = CATALOG_SETTINGS) -> CheckReport:
    """Return the checks of a planned job."""
    return join_reports(_interval(plan, rules), _simulation(plan, rules))


def _interval(plan: SurvivalPlan, rules: RuleSettings) -> CheckReport:
    limit = rules.threshold(SAVE_INTERVAL, "loss")
    loss = max(0.0, max(gain.gain for gain in plan.gains if gain.knob.name == "interval between saves"))
    now, best = (format_duration(every_s * PS_PER_S) for every_s in (plan.job.segment_s, plan.sweep.best_s))
    expected, actual = f"at most {limit:.2%} of the time", f"{loss:.2%} by saving each {now} instead of {best}"
    finding = SAVE_INTERVAL.finding(
        entity="interval between saves",
        expected=expected,
        actual=actual,
        confidence=Confidence.PREDICTED,
        evidence=("table survival_intervals",),
        next_step=f"save each {best} of work",
    )
    found = [finding] if loss > limit else []
    return run_check(SAVE_INTERVAL.id, "cost of the interval between saves", found, expected=expected, actual=actual)


def _simulation(plan: SurvivalPlan, rules: RuleSettings) -> CheckReport:
    subject = "simulated runs against the closed form"
    if plan.runs is None:
        return skip_check(SIMULATION_DIFFERS.id, subject, "nothing was simulated")
    change_R = plan.runs.effective_R - plan.closed_R
    change, error = float(change_R.mean()), float(change_R.std(ddof=1)) / len(change_R) ** 0.5
    limit = rules.threshold(SIMULATION_DIFFERS, "change") + ERRORS * error
    expected, actual = f"within {limit:.2%} of the time", f"{change:+.2%} in {len(change_R)} runs"
    finding = SIMULATION_DIFFERS.finding(
        entity="closed form",
        expected=expected,
        actual=actual,
        confidence=Confidence.PREDICTED,
        evidence=(f"standard error {error:.3%}",),
    )
    found = [finding] if abs(change) > limit else []
    return run_check(SIMULATION_DIFFERS.id, subject, found, expected=expected, actual=actual)
