"""The record of a job's stragglers: tables, checks, and what they rest on."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from fabrictune.foundation.checks import CheckReport, run_check
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.spans import DATA, SLOW_LINK, SLOW_RANK, STALLS, WRONG_CLOCK
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.observability.stragglers.diagnosis import Cause, Diagnosis, Limits, Straggler
from fabrictune.observability.stragglers.heat_map import heat_map
from fabrictune.observability.stragglers.transfer_rates import transfer_rates
from fabrictune.observability.stragglers.work import waits_for_data_ns

KIND = "train stragglers"
RULES: Mapping[Cause, Rule] = {
    "slow work": SLOW_RANK,
    "slow link": SLOW_LINK,
    "garbage collection": STALLS,
    "data loading": DATA,
    "wrong clock": WRONG_CLOCK,
}
MAX_NAMED = 8  # ranks in a text


def limits_of(rules: RuleSettings) -> Limits:
    """Return the limits that a site's rules set."""
    return Limits(
        slow_work=rules.threshold(SLOW_RANK, "excess"),
        stalls=rules.threshold(STALLS, "share"),
        loading=rules.threshold(DATA, "share"),
    )


def make_stragglers_record(
    diagnosis: Diagnosis,
    *,
    name: str,
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
    nic_rate_bps: int | None = None,
) -> RunRecord:
    """Return a record of kind "train stragglers"; `started` is `time.perf_counter` at the start.

    With the rate of a rank's NIC, transfers between hosts are set against it.
    """
    limits = limits_of(rules)
    rates, num_unseen = transfer_rates(diagnosis.spans, diagnosis.joined, nic_rate_bps=nic_rate_bps)
    record = RunRecord(
        kind=KIND,
        run={
            "name": name,
            "configuration": {
                "slow_work_fraction": limits.slow_work,
                "stalls_fraction": limits.stalls,
                "loading_fraction": limits.loading,
                "nic_rate_bps": nic_rate_bps,
            },
            "outcome": {**outcome(diagnosis), "num_unseen_transfers": num_unseen},
            "notes": list(diagnosis.notes),
            **describe_run(seed=0, started=started),
        },
        tables={
            "stragglers": to_columns("stragglers", [_row(diagnosis, found) for found in diagnosis.stragglers]),
            "straggler_arrivals": to_columns("straggler_arrivals", list(_arrival_rows(diagnosis))),
            "transfer_rates": to_columns("transfer_rates", [asdict(rate) for rate in rates]),
            "straggler_heat": to_columns("straggler_heat", list(_heat_rows(diagnosis))),
        },
    )
    report = CheckReport()
    for cause, rule in RULES.items():
        report += _check(diagnosis, cause, rule)
    return record.with_checks(report)


def outcome(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the figures of a diagnosis."""
    spans = diagnosis.spans
    return {
        "layout": spans.layout.describe(),
        "num_ranks": len(np.unique(spans.rank_N)),
        "num_steps": len(diagnosis.work.steps),
        "num_requests": diagnosis.joined.num_requests,
        "step_ns": round(diagnosis.step_ns),
        "replayed_step_ns": round(diagnosis.replayed_step_ns),
        "num_stragglers": len(diagnosis.stragglers),
        **_waits_for_data(diagnosis),
    }


def _waits_for_data(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the share of the step that waits for data take: of the middle rank, and of the one that waits longest."""
    waits_R = waits_for_data_ns(diagnosis.work)
    if waits_R is None or not np.isfinite(waits_R).any():
        return {"loading_fraction": 0.0, "most_loading_fraction": 0.0, "most_loading_rank": UNKNOWN}
    share_R = waits_R / diagnosis.step_ns
    most = int(np.nanargmax(share_R))
    return {
        "loading_fraction": float(np.nanmedian(share_R)),
        "most_loading_fraction": float(share_R[most]),
        "most_loading_rank": most,
    }


def name_ranks(straggler: Straggler, diagnosis: Diagnosis) -> str:
    """Return where a straggler is, in words."""
    if not straggler.ranks:
        return "the job"
    if len(straggler.ranks) == 1:
        host = diagnosis.spans.host_R[straggler.ranks[0]]
        return f"rank {straggler.ranks[0]} on {host}"
    shown = ", ".join(map(str, straggler.ranks[:MAX_NAMED]))
    return f"one of ranks {shown}{', ...' if len(straggler.ranks) > MAX_NAMED else ''}"


def _row(diagnosis: Diagnosis, found: Straggler) -> dict[str, Any]:
    hosts = dict.fromkeys(diagnosis.spans.host_R[rank] for rank in found.ranks)
    return {
        "cause": found.cause,
        "ranks": " ".join(map(str, found.ranks)),
        "hosts": " ".join(hosts),
        "place": int(diagnosis.work.peers_R[found.ranks[0]]) if found.ranks else UNKNOWN,
        "pattern": found.pattern,
        "excess_fraction": found.excess_fraction,
        "steps_fraction": found.steps_fraction,
        "offset_ns": found.offset_ns,
        "gain_fraction": float(UNKNOWN) if found.gain_fraction is None else found.gain_fraction,
    }


def _arrival_rows(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    for arrivals in diagnosis.arrivals:
        yield {
            "group": arrivals.group,
            "axis": arrivals.axis,
            "num_requests": arrivals.num_requests,
            "num_late": arrivals.num_late,
            "last_rank": arrivals.last_rank,
            "last_share_fraction": arrivals.last_share,
            "late_ns": round(arrivals.late_ns),
            "pattern": arrivals.pattern,
        }


def _heat_rows(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    for cell in heat_map(diagnosis):
        yield {**vars(cell), "time_ns": round(cell.time_ns)}


def _check(diagnosis: Diagnosis, cause: Cause, rule: Rule) -> CheckReport:
    found = [straggler for straggler in diagnosis.stragglers if straggler.cause == cause]
    num_ranks = len(np.unique(diagnosis.spans.rank_N))
    return run_check(
        rule.id,
        f"{num_ranks:,} ranks in {len(diagnosis.work.steps):,} steps",
        [_finding(diagnosis, straggler, rule) for straggler in found],
        expected=_expected(cause),
        actual="none found",
    )


def _finding(diagnosis: Diagnosis, found: Straggler, rule: Rule) -> Finding:
    return rule.finding(
        entity=name_ranks(found, diagnosis),
        expected=_expected(found.cause),
        actual=f"{describe(found)}{_gain(found)}",
        confidence=Confidence.MEASURED,
        evidence=("table stragglers", "table straggler_heat", "table straggler_arrivals"),
    )


def describe(found: Straggler) -> str:
    """Return what a straggler does, in words."""
    excess = f"{found.excess_fraction:.1%}"
    match found.cause:
        case "slow work":
            return f"own work {excess} above its peers', {_when(found)}"
        case "slow link":
            return f"transfers {excess} above the usual"
        case "garbage collection":
            return f"collections of garbage take {excess} of the step, {_when(found)}"
        case "data loading":
            return f"waits for data take {excess} of the step, {_when(found)}"
        case "wrong clock":
            side = "ahead" if found.offset_ns > 0 else "behind"
            return f"clock {abs(found.offset_ns) / 1e6:.3f} ms {side}"


def _when(found: Straggler) -> str:
    if found.pattern == "rotating":
        return f"on one rank after another, in {found.steps_fraction:.0%} of the steps"
    return f"in {found.steps_fraction:.0%} of the steps"


def _gain(found: Straggler) -> str:
    return f"; without it steps are {found.gain_fraction:.1%} shorter (replayed)" if found.gain_fraction else ""


def _expected(cause: Cause) -> str:
    return {
        "slow work": "own work like its peers'",
        "slow link": "transfers like others of their sort",
        "garbage collection": "no rank stopped alone",
        "data loading": "batches ready when they are asked for",
        "wrong clock": "clocks within their bounds",
    }[cause]
