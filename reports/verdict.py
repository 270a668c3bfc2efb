"""Verdict of a page: findings by severity, alike ones together, and the one sentence a page opens with."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabrictune.foundation.checks import Result, count_checks
from fabrictune.foundation.finding_rules.catalog import find_rule
from fabrictune.foundation.finding_rules.reference_page import reference
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.settings import describe_site
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.records import Finding, Severity
from fabrictune.foundation.units import format_bytes, format_duration
from fabrictune.reports.answers.answer import spread
from fabrictune.reports.blocks import MISSING, listed, plural
from fabrictune.reports.changes import change_over_seeds
from fabrictune.reports.kpi_table import format_kpi
from fabrictune.reports.kpis import Kpi, kpis_by_name
from fabrictune.reports.record_view import TRANSFERS, Run
from fabrictune.reports.repetitions import Repetitions, label_of, repetitions_of

MAX_GROUPS = 40
MAX_ALIKE = 50  # findings of one group that are listed

# Indicators above the fold.
HEADLINE = (
    METRICS["makespan"].label,
    METRICS["bus_bandwidth"].label,
    METRICS["completion_time.p99"].label,
    "Highest offered load",
    "Expected throughput",
    METRICS["paused_time"].label,
    METRICS["drop_rate"].label,
)
JCT = METRICS["makespan"].label


@dataclass(frozen=True, kw_only=True)
class FindingGroup:
    """Findings of one rule and severity: the first in full, the others by entity."""

    label: str  # of the run, or of all runs with just these
    finding: Finding
    others: tuple[Finding, ...]
    num_left_out: int
    rule: Rule | None  # None for one of another version
    reference: str  # where the rule is documented
    num_unkept: int  # found, and not kept by the record


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The numbers above the fold: one column an indicator that any run has, one row a run."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]  # (run, values)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The top of the page."""

    sentence: str
    tone: str  # the worst severity; without findings "good" if every check of every run passed, else "unknown"
    nothing_found: str  # what stands in the place of findings where there are none
    headline: Headline
    groups: tuple[FindingGroup, ...]
    num_groups_left_out: int
    sites: tuple[tuple[str, str], ...]  # (run, which site file applied and what it changed)


def make_verdict(runs: Sequence[Run]) -> Verdict:
    """Return the top of a page on these runs."""
    groups, unfinished = group_findings(runs), _unfinished(runs)
    worst = Severity.CRITICAL.value if unfinished else groups[0].finding.severity.value if groups else ""
    has_passed = all(_has_passed(run) for run in runs)
    indicators = {run.label: kpis_by_name(run) for run in runs}
    return Verdict(
        sentence=" ".join(
            part for part in (unfinished, _compare(indicators, runs), _count(runs), _checks(runs)) if part
        ),
        tone=worst or ("good" if has_passed else "unknown"),
        nothing_found=_nothing_found(runs, has_passed=has_passed),
        headline=_headline(indicators),
        groups=tuple(groups[:MAX_GROUPS]),
        num_groups_left_out=max(len(groups) - MAX_GROUPS, 0),
        sites=tuple((run.label, site) for run in runs if (site := describe_site(run.record.run.get("rules")))),
    )


def group_findings(runs: Sequence[Run]) -> list[FindingGroup]:
    """Return the findings of all runs, most severe first, those of one rule and run together; alike groups once."""
    alike: dict[tuple[int, int, str], list[Finding]] = {}
    for order, run in enumerate(runs):
        for finding in run.record.findings:
            alike.setdefault((-finding.severity.rank, order, finding.id), []).append(finding)
    unkept = [_unkept(run) for run in runs]
    owners: dict[FindingGroup, list[str]] = {}
    for (_, order, _), findings in sorted(alike.items(), key=lambda item: item[0][:2]):
        group = FindingGroup(
            label="",
            finding=findings[0],
            others=tuple(findings[1 : 1 + MAX_ALIKE]),
            num_left_out=max(len(findings) - 1 - MAX_ALIKE, 0),
            rule=find_rule(findings[0].id),
            reference=reference(findings[0].id),
            num_unkept=unkept[order].pop(findings[0].id, 0),
        )
        owners.setdefault(group, []).append(runs[order].label)
    return [replace(group, label=listed(labels)) for group, labels in owners.items()]


def _unkept(run: Run) -> dict[str, int]:
    """Return how many findings of each rule a run made beyond those that its record keeps."""
    found: Counter[str] = Counter()
    for check in run.record.checks or ():
        found[check.rule] += check.num_found
    found.subtract(finding.id for finding in run.record.findings)
    return {rule: number for rule, number in found.items() if number > 0}


def _has_passed(run: Run) -> bool:
    """Return whether checks ran, and all of them passed."""
    checks = run.record.checks
    return bool(checks) and all(check.result == Result.PASSED for check in checks or ())


def _checks(runs: Sequence[Run]) -> str:
    """Return how the checks ended; of several runs each by its label."""
    labels: dict[str, list[str]] = {}
    for run in runs:
        labels.setdefault(count_checks(run.record.checks), []).append(run.label)
    if len(runs) == 1:
        (text,) = labels
        return f"{text[0].upper()}{text[1:]}."
    return " ".join(f"{listed(names)}: {text}." for text, names in labels.items())


def _nothing_found(runs: Sequence[Run], *, has_passed: bool) -> str:
    of = "these runs" if len(runs) > 1 else "this run"
    if has_passed:
        return f"All checks of {of} ran and passed."
    if any(run.record.checks is None for run in runs):
        return f"No findings are recorded, but not every record says what was checked of {of}."
    if not any(run.record.checks for run in runs):
        return f"Nothing was checked of {of}."
    return f"No check of {of} found anything, but not all of them ran."


def _count(runs: Sequence[Run]) -> str:
    """Return how many findings there are by severity; that there are none, only where something was checked."""
    counts = dict.fromkeys(reversed(Severity), 0)
    for run in runs:
        for finding in run.record.findings:
            counts[finding.severity] += 1
    counted = [plural(count, f"{severity.value} finding") for severity, count in counts.items() if count]
    unkept = sum(sum(_unkept(run).values()) for run in runs)
    if counted:
        return f"{', '.join(counted)}{f', and {unkept:,} that the record does not keep' if unkept else ''}."
    return "No findings." if all(run.record.checks for run in runs) else ""


def _compare(indicators: dict[str, dict[str, Kpi]], runs: Sequence[Run]) -> str:
    """Return how much longer the slowest run took than the fastest, or "" for fewer than two.

    Of scenarios that were run under several seeds each, how much longer all runs of one took.
    """
    groups = repetitions_of(runs)
    if len(groups) > 1 and (sentence := _compare_scenarios(groups, indicators)):
        return sentence
    times = {label: kpis[JCT].value for label, kpis in indicators.items() if JCT in kpis}
    times = {label: time_ps for label, time_ps in times.items() if math.isfinite(time_ps)}
    if len(times) < 2:
        return ""
    slow, fast = max(times, key=times.__getitem__), min(times, key=times.__getitem__)
    if times[slow] == times[fast]:
        return f"All runs take {format_duration(times[fast])}."
    ratio = times[slow] / times[fast]
    cause = "; only their seeds differ" if groups else _other_work(slow, fast, runs)
    return f"{slow} takes {ratio:.2f} times as long as {fast}{cause}."


def _compare_scenarios(groups: Sequence[Repetitions], indicators: dict[str, dict[str, Kpi]]) -> str:
    """Return how much longer the runs of the slowest scenario took than those of the fastest, with the interval."""
    if not all(JCT in indicators[run.label] for group in groups for run in group):
        return ""
    fast, *_, slow = sorted(groups, key=lambda group: sum(indicators[run.label][JCT].value for run in group))
    change = change_over_seeds((fast, slow), JCT)
    if change is None:
        return ""
    ratio = spread((1 + change.value, 1 + change.low, 1 + change.high), "{:.2f}".format)
    doubt = "" if change.is_sure else " It may be chance."
    return f"{label_of(slow)} take {ratio} times as long as {label_of(fast)}, over seeds.{doubt}"


def _other_work(slow: str, fast: str, runs: Sequence[Run]) -> str:
    """Return what two runs of other traffic moved, for their times are no comparison; "" where it is the same."""
    moved = {run.label: int(table["bytes"].sum()) for run in runs if (table := run.table(TRANSFERS)) is not None}
    if moved[slow] == moved[fast]:
        return ""
    return f", but the traffic is not the same: {format_bytes(moved[slow])} and {format_bytes(moved[fast])}"


def _unfinished(runs: Sequence[Run]) -> str:
    """Return how many transfers did not finish, for no time of such a run can be trusted; "" where all did."""
    finish = {run.label: table["finish_ps"] for run in runs if (table := run.table(TRANSFERS)) is not None}
    counts = [(label, int((finish_ps_T < 0).sum())) for label, finish_ps_T in finish.items()]
    return " ".join(f"{label}: {plural(count, 'transfer')} never completed." for label, count in counts if count)


def _headline(indicators: dict[str, dict[str, Kpi]]) -> Headline:
    names = tuple(name for name in HEADLINE if any(name in kpis for kpis in indicators.values()))
    rows = tuple(
        (label, tuple(format_kpi(kpis[name]) if name in kpis else MISSING for name in names))
        for label, kpis in indicators.items()
    )
    return Headline(names=names, rows=rows)
