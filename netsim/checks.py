"""Checks of a run: those of pauses and packets, transfers that did not complete, and samples."""

from collections.abc import Mapping

import numpy as np

from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.simulation import SAMPLES_TRUNCATED, UNFINISHED_TRANSFERS
from fabrictune.foundation.records import Columns, Confidence, Finding
from fabrictune.netsim.outcome import MAX_NAMED, Outcome
from fabrictune.netsim.packet_checks import (
    check_loss,
    check_lossless,
    check_order,
    check_refusals,
    check_repeats,
)
from fabrictune.netsim.pause_checks import check_deadlock, check_pauses, check_storms


def check_run(outcome: Outcome) -> CheckReport:
    """Return the checks of a run without regard to its faults, and their findings."""
    return join_reports(
        check_deadlock(outcome),
        check_unfinished(outcome.tables["transfers"], outcome.run["outcome"]),
        check_lossless(outcome),
        check_loss(outcome),
        check_storms(outcome),
        *check_pauses(outcome),
        check_repeats(outcome),
        check_order(outcome),
        check_refusals(outcome),
    )


def check_unfinished(transfers: Columns, outcome: str) -> CheckReport:
    """Return the check of transfers that did not complete."""
    return run_check(
        UNFINISHED_TRANSFERS.id,
        f"{len(transfers['transfer']):,} transfers",
        [_unfinished(transfers, outcome)],
        expected="all transfers to complete",
        actual="all did",
    )


def check_samples(tables: Mapping[str, Columns], *, are_complete: bool) -> CheckReport:
    """Return the check of a probe: whether the record has all its samples."""
    num_samples = sum(len(tables[name]["time_ps"]) for name in ("samples", "flow_samples"))
    truncated = SAMPLES_TRUNCATED.finding(
        entity="probe",
        expected="samples until the end of the run",
        actual=f"only the first {num_samples:,} samples are kept",
        confidence=Confidence.CONFIGURED,
    )
    found = [] if are_complete else [truncated]
    expected = "samples until the end of the run"
    return run_check(SAMPLES_TRUNCATED.id, f"{num_samples:,} samples", found, expected=expected, actual="all")


def _unfinished(transfers: Columns, outcome: str) -> Finding | None:
    rows = np.nonzero(transfers["acknowledged_ps"] < 0)[0]
    if not len(rows):
        return None
    next_steps = {
        "stalled": "look for queue pairs out of retries (losses, a path without an end) behind these transfers",
        "time-limit": "raise time_limit, or look at what delays these transfers",
        "interrupted": "run again to the end",
    }
    ends = {"stalled": "run stalled", "time-limit": "run reached its time limit", "interrupted": "run interrupted"}
    return UNFINISHED_TRANSFERS.finding(
        entity=f"transfers {_some(rows)}",
        expected="all transfers to complete",
        actual=f"{len(rows)} of {len(transfers['transfer'])} transfers never completed; {ends[outcome]}",
        next_step=next_steps[outcome],
        confidence=Confidence.PREDICTED,
    )


def _some(rows: np.ndarray) -> str:
    shown = ", ".join(str(row) for row in rows[:MAX_NAMED])
    return shown + (f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else "")
