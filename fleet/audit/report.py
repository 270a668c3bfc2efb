"""The report of an audit: each rule as a check, with its findings and how much it looked at."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabrictune.fleet.audit.forms import Judged, Outcome
from fabrictune.fleet.audit.rule_files import AuditRule
from fabrictune.fleet.collect.collection import NodeState
from fabrictune.fleet.facts.fact import FleetFacts
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules.fleet import AUDIT, NOT_COLLECTED
from fabrictune.foundation.findings import Confidence, Finding

CHECK_PREFIX = AUDIT.id.removesuffix("*")


@dataclass(frozen=True, kw_only=True)
class Objection:
    """A rule, and one fact that it objects to."""

    rule: AuditRule
    outcome: Outcome


def judge_all(rules: Sequence[AuditRule], facts: FleetFacts) -> tuple[CheckReport, tuple[Objection, ...]]:
    """Return the checks of all rules, and what they object to."""
    judged = [(rule, rule.form.judge(facts)) for rule in rules]
    report = join_reports(*(_check(rule, result) for rule, result in judged))
    objections = (Objection(rule=rule, outcome=outcome) for rule, result in judged for outcome in result.outcomes)
    return report, tuple(objections)


def check_states(states: Iterable[NodeState], missing: Sequence[NodeState]) -> CheckReport:
    """Return the check that every node was read."""
    findings = (
        NOT_COLLECTED.finding(
            entity=state.name,
            actual=f"{state.state.value}{': ' if state.detail else ''}{state.detail}",
            expected="the node's settings",
            confidence=Confidence.MEASURED,
            next_step=state.next_step,
        )
        for state in missing
    )
    return run_check(NOT_COLLECTED.id, f"{len(list(states)):,} nodes", findings, expected="every node read")


def _check(rule: AuditRule, judged: Judged) -> CheckReport:
    check_id = f"{CHECK_PREFIX}{rule.id}"
    names = " and ".join(rule.form.facts_named)
    if not judged.num_judged:
        reason = f"no node says {names}"
        if judged.num_without:
            reason = f"{judged.num_without:,} values of {rule.form.facts_named[0]} have nothing to be compared with"
        return skip_check(check_id, names, reason)
    subject = f"{judged.num_judged:,} values of {names}"
    if judged.num_without:
        subject += f", {judged.num_without:,} more without the other"
    return run_check(check_id, subject, _findings(rule, judged.outcomes), expected=rule.title)


def _findings(rule: AuditRule, outcomes: Iterable[Outcome]) -> Iterator[Finding]:
    for outcome in outcomes:
        reason = (rule.why,) if rule.why else ()
        yield AUDIT.finding(
            member=rule.id,
            severity=rule.severity,
            entity=outcome.fact.entity,
            actual=outcome.actual,
            expected=outcome.expected,
            confidence=rule.confidence,
            evidence=(*outcome.evidence, *reason, f"see {rule.page}"),
            next_step=rule.next_step,
        )
