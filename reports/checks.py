"""Checks of a run: each rule that looked, at what, and its result, with the values of bounds that are met."""

from collections.abc import Sequence

from fabrictune.foundation.checks import UNSAID, Check, Result, count_checks
from fabrictune.foundation.finding_rules.catalog import find_rule
from fabrictune.reports.blocks import MISSING, Cell, Section, Table, plural, words
from fabrictune.reports.record_view import Run

MAX_ROWS = 100
ORDER = (Result.FOUND, Result.NOT_RUN, Result.PASSED)
TONES = {Result.FOUND: "bad", Result.NOT_RUN: "", Result.PASSED: "good"}


def checks_section(runs: Sequence[Run]) -> Section | None:
    """Return the checks of each run, those that found something first, or None where no record says what it checked."""
    if all(run.record.checks is None for run in runs):
        return None
    tables = tuple(check_table(run, is_folded=len(runs) > 1) for run in runs)
    lead = "What was looked at, and with what result. A check that did not run has not passed."
    return Section(anchor="checks", title="Checks", lead=lead, blocks=tables)


def check_table(run: Run, *, is_folded: bool) -> Table:
    """Return one row for each check of a run."""
    checks = sorted(run.record.checks or (), key=lambda check: ORDER.index(check.result))
    num_more = len(checks) - MAX_ROWS
    return Table(
        caption=f"{run.label}: {UNSAID if run.record.checks is None else count_checks(checks)}",
        headings=("Looks for", "In", "Expected", "Actual", "Result", "Rule"),
        rows=tuple(_row(run, check) for check in checks[:MAX_ROWS]),
        left_out=f"{plural(num_more, 'check')} more in run.json of the record." if num_more > 0 else "",
        is_folded=is_folded,
    )


def _row(run: Run, check: Check) -> tuple[Cell, ...]:
    rule = find_rule(check.rule)
    return (
        words(rule.title if rule else check.rule),
        words(check.subject),
        words(check.expected or MISSING),
        words(_actual(run, check) or MISSING),
        words(check.result.value, tone=TONES[check.result]),
        words(check.rule),
    )


def _actual(run: Run, check: Check) -> str:
    """Return what was seen: the only finding in full, of several the number, of a check that did not run the reason."""
    if check.result != Result.FOUND:
        return check.reason or check.actual
    of_rule = [finding for finding in run.record.findings if finding.id == check.rule]
    return of_rule[0].actual if check.num_found == len(of_rule) == 1 else plural(check.num_found, "finding")
