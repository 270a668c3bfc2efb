"""The record of a job's decay, and of why it takes longer than another run."""

from typing import Any

import numpy as np

from fabrictune.foundation.checks import CheckReport, run_check
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.spans import DECAY
from fabrictune.foundation.records import Confidence, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.observability.decay.analysis import Decay, PartGrowth
from fabrictune.observability.decay.comparison import Comparison
from fabrictune.observability.decay.parts import CHECKPOINT, GARBAGE, LOADING, SKEW, WORK

KIND = "train decay"
COLUMNS = {
    WORK: "work_ns",
    GARBAGE: "garbage_ns",
    LOADING: "loading_ns",
    CHECKPOINT: "checkpoint_ns",
    SKEW: "skew_ns",
}


def make_decay_record(
    decay: Decay,
    comparison: Comparison | None,
    *,
    name: str,
    other: str,
    num_dropped: int,
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return a record of kind "train decay"; `started` is `time.perf_counter` at the start."""
    tables = {
        "decay_parts": to_columns("decay_parts", [_part_row(part) for part in decay.growths]),
        "decay_steps": to_columns("decay_steps", _step_rows(decay)),
    }
    if comparison is not None:
        tables["decay_differences"] = to_columns("decay_differences", _difference_rows(comparison))
    record = RunRecord(
        kind=KIND,
        run={
            "name": name,
            "configuration": {"against": other},
            "outcome": outcome(decay, comparison),
            "notes": _notes(num_dropped, comparison),
            **describe_run(seed=0, started=started),
        },
        tables=tables,
    )
    return record.with_checks(_check(decay, rules))


def outcome(decay: Decay, comparison: Comparison | None) -> dict[str, Any]:
    """Return the figures of a decay."""
    found: dict[str, Any] = {
        "num_steps": len(decay.parts.steps),
        "first_step": int(decay.parts.steps[0]),
        "last_step": int(decay.parts.steps[-1]),
        "first_step_ns": round(decay.first_ns),
        "last_step_ns": round(decay.last_ns),
        "growth_fraction": decay.growth_fraction,
        "mfu_change_fraction": decay.mfu_change_fraction,
        "is_trend": decay.is_trend,
        "causes": [part.part for part in decay.causes] if decay.is_trend else [],
    }
    if comparison is not None:
        found["comparison"] = {
            "loss": comparison.loss,
            "own_steps": comparison.own_steps,
            "other_steps": comparison.other_steps,
            "own_ns": round(comparison.own_ns),
            "other_ns": round(comparison.other_ns),
        }
    return found


def describe(part: PartGrowth) -> str:
    """Return what a part does, in words."""
    where = f" on {'rank' if len(part.ranks) == 1 else 'ranks'} {', '.join(map(str, part.ranks))}" if part.ranks else ""
    return f"{part.part}{where} grows by {part.growth_ns / 1e6:.3g} ms ({part.share:.0%} of the growth)"


def _check(decay: Decay, rules: RuleSettings) -> CheckReport:
    least = rules.threshold(DECAY, "growth")
    is_found = decay.is_trend and decay.growth_fraction > least
    causes = "; ".join(map(describe, decay.causes)) or "no part of the step explains it"
    finding = DECAY.finding(
        entity="the step",
        expected=f"growth over the run up to {least:.0%}",
        actual=f"{decay.growth_fraction:.1%} longer at the end, MFU {decay.mfu_change_fraction:.1%}: {causes}",
        confidence=Confidence.MEASURED,
        evidence=("table decay_steps", "table decay_parts"),
    )
    return run_check(
        DECAY.id,
        f"{len(decay.parts.steps):,} steps",
        [finding] if is_found else [],
        expected=f"growth up to {least:.0%}",
        actual=f"{decay.growth_fraction:+.1%}{'' if decay.is_trend else ', within the scatter of steps'}",
    )


def _part_row(part: PartGrowth) -> dict[str, Any]:
    return {
        "part": part.part,
        "first_ns": round(part.first_ns),
        "last_ns": round(part.last_ns),
        "growth_ns": round(part.growth_ns),
        "share_fraction": part.share,
        "ranks": " ".join(map(str, part.ranks)),
    }


def _step_rows(decay: Decay) -> list[dict[str, Any]]:
    parts = {column: decay.parts.part_ns[part].max(axis=0) for part, column in COLUMNS.items()}
    columns = {"step": decay.parts.steps, "step_ns": decay.parts.step_ns_S, **parts}
    rounded = {name: np.round(values).astype(np.int64).tolist() for name, values in columns.items()}
    return [dict(zip(rounded, row, strict=True)) for row in zip(*rounded.values(), strict=True)]


def _difference_rows(comparison: Comparison) -> list[dict[str, Any]]:
    whole = comparison.own_ns - comparison.other_ns
    return [
        {
            "part": one.part,
            "own_ns": round(one.own_ns),
            "other_ns": round(one.other_ns),
            "change_ns": round(one.change_ns),
            "share_fraction": one.change_ns / whole if whole else 0.0,
        }
        for one in comparison.differences
    ]


def _notes(num_dropped: int, comparison: Comparison | None) -> list[str]:
    notes = ["a step's FLOPs are taken as constant, so that MFU changes as one over its time"]
    if num_dropped:
        notes.append(f"{num_dropped:,} earlier spans are not kept, or not read; of early steps every few are there")
    if comparison is not None and comparison.loss is None:
        notes.append(
            "a run has no record with ten losses beside its spans: as many steps as both have are compared, not losses"
        )
    return notes
