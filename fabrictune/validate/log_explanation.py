"""Explanation of an NCCL log: its job, what looks wrong, a draft of a scenario, and results beside the model.

The parts rest on one another and each says on what (docs/decisions/0082): the summary on messages, the draft on the
summary and assumptions, the comparison on the draft.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from fabrictune.collectives.measurement.files import MeasurementFiles
from fabrictune.collectives.nccl.job_checks import check_job
from fabrictune.collectives.nccl.job_summary import JobSummary, summarize_job
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.collectives.nccl.topology_checks import check_topology, slowest_rate_bps
from fabrictune.collectives.nccl.topology_xml import HostTopology
from fabrictune.foundation.checks import Check, CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.collectives import FASTER_THAN_BOUND, GAP, RATE_DECIDES
from fabrictune.foundation.finding_rules.rdma import FLAP_TOO_LONG, WATCHDOG_TOO_SHORT
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Confidence, Finding, RunRecord
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import format_bytes, format_rate
from fabrictune.rdma_bench.timers.nccl_log_report import Explanation, Requirements, explain_log
from fabrictune.scenario.files import parse_scenario
from fabrictune.validate.drafted_scenario import Draft, DraftHints, draft_scenario
from fabrictune.validate.measured_collectives import compare_measured
from fabrictune.validate.verdict_rates import SERIES_COLUMNS

DRAFT_NAME = "drafted"
DRAFT_PATH = Path("drafted.yaml")  # what mistakes of the draft name
_ASKED_ELSEWHERE = (FLAP_TOO_LONG.id, WATCHDOG_TOO_SHORT.id)  # by `rdma timers explain`, with what the job needs


@dataclass(frozen=True, kw_only=True)
class LogExplanation:
    """All parts; `draft` and `compared` are None where the log or the question does not allow them."""

    summary: JobSummary
    timers: Explanation
    draft: Draft | None
    no_draft: str  # why there is none
    compared: RunRecord | None
    report: CheckReport

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of all parts."""
        return self.report.findings

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return the checks of all parts."""
        return self.report.checks


def explain_nccl_log(
    logs: Sequence[Path],
    measured: MeasurementFiles | None,
    hints: DraftHints,
    *,
    topology: HostTopology | None = None,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> LogExplanation:
    """Return the explanation of the logs of one job; raises InputError for what is no log, or results of other ranks.

    `measured` are the job's results, `topology` is that of its hosts.
    """
    log = read_nccl_log(logs)
    summary = summarize_job(log)
    if topology and hints.rate_bps == summary.rate_bps == UNKNOWN:
        rate_bps = slowest_rate_bps(topology, summary)
        hints = DraftHints(rate_bps=rate_bps, rate_source="speed in the topology file")
    timers = explain_log(log, None, Requirements())
    try:
        draft, no_draft = draft_scenario(summary, measured, hints, name=DRAFT_NAME), ""
    except InputError as error:
        draft, no_draft = None, "; ".join(f"{one.found}; next: {one.next_step}" for one in error.mistakes)
    compared = _compare(summary, measured, draft, rules, progress) if measured else None
    return LogExplanation(
        summary=summary,
        timers=timers,
        draft=draft,
        no_draft=no_draft,
        compared=compared,
        report=join_reports(
            check_job(log, summary),
            check_topology(topology, summary) if topology else CheckReport(),
            _of_timers(timers),
            _of_results(compared, draft) if compared else CheckReport(),
        ),
    )


def _compare(
    summary: JobSummary,
    measured: MeasurementFiles,
    draft: Draft | None,
    rules: RuleSettings,
    progress: Progress | None,
) -> RunRecord:
    others = {row.num_ranks for row in measured.rows} - {summary.num_ranks}
    if others and summary.num_ranks != UNKNOWN:
        found = f"results of {', '.join(map(str, sorted(others)))} ranks beside a log of {summary.num_ranks}"
        raise InputError(
            Mistake(where="results", found=found, next_step="give the log and the results of one job, or --num-ranks")
        )
    scenario = parse_scenario(draft.text, DRAFT_PATH) if draft else None
    return compare_measured(measured, scenario, rules=rules, progress=progress)


def _of_results(compared: RunRecord, draft: Draft | None) -> CheckReport:
    """Return the checks of a comparison; with an assumed rate, whether it decides in place of those that rest on it."""
    report = CheckReport(checks=compared.checks or (), findings=compared.findings)
    if draft is None or not draft.is_rate_assumed:
        return report
    resting = (FASTER_THAN_BOUND.id, GAP.id)
    reason = "the rate of the NICs is assumed (--nic-rate)"
    return join_reports(
        CheckReport(
            checks=tuple(check for check in report.checks if check.rule not in resting),
            findings=tuple(finding for finding in report.findings if finding.id not in resting),
        ),
        *(skip_check(rule, "results beside the model", reason) for rule in resting),
        run_check(RATE_DECIDES.id, "verdicts at the usual NIC rates", _undecided(compared)),
    )


def _undecided(compared: RunRecord) -> Iterator[Finding]:
    """Yield a finding for each operation whose verdict turns within the rates that allow its time."""
    rows = [row for row in to_rows(compared.tables["verdict_rates"]) if row["is_possible"]]
    reported = set[tuple[str, ...]]()
    for _, group in groupby(rows, key=lambda row: [row[key] for key in SERIES_COLUMNS]):
        own = list(group)
        causes = (str(own[0]["operation"]), *dict.fromkeys(row["cause"] for row in own))
        if len(causes) == 2 or causes in reported:  # one cause; or the same in place
            continue
        reported.add(causes)
        first, turns = own[0], [row["turn_bps"] for row in own if row["turn_bps"] > 0]
        parts = [f"{_cause(first)} at {format_rate(first['rate_bps'])}"]
        following = [row for before, row in pairwise(own) if row["cause"] != before["cause"]]
        parts += [f"{_cause(row)} from {format_rate(turn)} on" for turn, row in zip(turns, following, strict=False)]
        place = " in place" if first["is_in_place"] else ""
        yield RATE_DECIDES.finding(
            entity=f"{first['operation']} of {format_bytes(first['size_bytes'])}{place}",
            expected="one cause at every rate that the NICs may have",
            actual=f"most of the time is {', '.join(parts)}",
            confidence=Confidence.PREDICTED,
        )


def _cause(row: Mapping[str, Any]) -> str:
    return str(row["cause"]).replace("_", " ")


def _of_timers(timers: Explanation) -> CheckReport:
    return CheckReport(
        checks=tuple(check for check in timers.checks if check.rule not in _ASKED_ELSEWHERE), findings=timers.findings
    )
