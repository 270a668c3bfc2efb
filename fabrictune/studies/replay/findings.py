"""Finding of a replayed trace: steps that take longer than their transfers alone would make them."""

from collections.abc import Iterator

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.simulation import STEP_ABOVE_BOUND
from fabrictune.foundation.records import Confidence, Finding, RunRecord
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.foundation.units import format_duration
from fabrictune.studies.replay.summary import ReplaySummary, summarize_replays
from fabrictune.studies.replay.transfer_graph import MAX_TRANSFERS


def check_replays(record: RunRecord, rules: RuleSettings = CATALOG_SETTINGS) -> CheckReport:
    """Return the check of the replayed steps of a record; none where nothing is replayed."""
    replays = summarize_replays(record)
    if not replays:
        return CheckReport(checks=(), findings=())
    subject = f"{sum(len(replay.steps) for replay in replays):,} replayed steps"
    if any(step.lower_bound_ps == UNKNOWN for replay in replays for step in replay.steps):
        return skip_check(STEP_ABOVE_BOUND.id, subject, f"a run of more than {MAX_TRANSFERS:,} transfers has no bound")
    limit = rules.threshold(STEP_ABOVE_BOUND, "bound")
    findings = [finding for replay in replays for finding in _steps_above_bound(replay, limit)]
    return run_check(
        STEP_ABOVE_BOUND.id, subject, findings, expected=f"at most {limit:g} times the lower bound, mean over steps"
    )


def _steps_above_bound(replay: ReplaySummary, limit: float) -> Iterator[Finding]:
    """Yield a finding where the mean step takes longer than its lower bound allows, with the link that has most."""
    num_steps = len(replay.steps)
    step_ps = sum(step.duration_ps for step in replay.steps) / num_steps
    bound_ps = sum(step.lower_bound_ps for step in replay.steps) / num_steps
    if step_ps <= limit * bound_ps:
        return
    links = [f"{link} {format_duration(time_ps)}" for link, time_ps in replay.critical_links_ps.items()]
    where = f"; most transfers of the critical path on {links[0]}" if links else ""
    yield STEP_ABOVE_BOUND.finding(
        entity=replay.part or "replayed trace",
        expected=f"at most {limit:g} times its lower bound, {format_duration(bound_ps)}",
        actual=f"a step takes {format_duration(step_ps)}, {step_ps / bound_ps:.2f} times as long{where}",
        confidence=Confidence.PREDICTED,
        evidence=("table replayed_steps", "table critical_path"),
    )
