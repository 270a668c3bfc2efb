"""The outcome of a training run: reports, traces of all ranks as one, and the record of both.

Left out: jobs whose ledgers together don't fit in rank 0's memory; a recipe with fewer traced steps has smaller ones.
"""

import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabrictune.foundation.checks import run_check
from fabrictune.foundation.finding_rules.collectives import STEPS_SKIPPED
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.ledger import merge
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hardware import driver_settings
from fabrictune.trainer_probe.training.progress import RoutingReport, StepReport
from fabrictune.trainer_probe.training.stretches import last_step_stretches

if TYPE_CHECKING:
    from fabrictune.trainer_probe.comm import Comm

TRACE_FILE = "comm_trace.parquet"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A run that has finished, or was stopped between two of its steps."""

    reports: tuple[StepReport, ...]
    trace: CommTrace  # of the last steps, all ranks
    was_stopped: bool
    data_state: dict[str, int]  # for another run that begins at the next sample


def gather_trace(comm: "Comm") -> CommTrace | None:
    """Return the requests of all ranks on rank 0, None on the others; every rank calls this."""
    contents = comm.gather_bytes(comm.trace().to_bytes())
    return None if contents is None else merge([CommTrace.from_bytes(content) for content in contents])


def make_record(
    recipe: Recipe, outcome: Outcome, *, started: float, rules: RuleSettings = CATALOG_SETTINGS
) -> RunRecord:
    """Return a record of kind "train run"; `started` is `time.perf_counter` at the start.

    The file `comm_trace.parquet` contains the ranks' requests of the last steps, a CommTrace.
    """
    content = io.BytesIO()
    outcome.trace.write(content)
    record = RunRecord(
        kind="train run",
        run={
            **describe_recipe(recipe),
            "outcome": "interrupted" if outcome.was_stopped else "finished",
            "next_step": outcome.reports[-1].step + 1 if outcome.reports else recipe.end_step,
            "data_state": outcome.data_state,
            "driver_settings": {name: os.environ.get(name, own) for name, own in driver_settings(recipe).items()},
            **describe_run(seed=recipe.seed, started=started),
        },
        tables={
            "training": training_table(outcome.reports),
            "rank_stretches": last_step_stretches(outcome.trace),
        },
        files={TRACE_FILE: content.getvalue()},
    )
    return record.with_checks(
        run_check(
            STEPS_SKIPPED.id,
            f"{len(outcome.reports):,} steps",
            _skipped_steps(outcome.reports, rules),
            expected="finite gradients",
            actual="no step skipped",
        )
    )


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return what a record says of a run's recipe."""
    return {"name": recipe.name, "question": recipe.question, "configuration": recipe.settings()}


def training_table(reports: Sequence[StepReport]) -> Columns:
    """Return the columns of the record's table `training`; a figure that is not known or not finite is -1."""
    return to_columns("training", [training_row(report) for report in reports])


def training_row(report: StepReport) -> dict[str, Any]:
    """Return the row of a step, JSON values only."""
    return {
        "step": report.step,
        "loss": _finite(report.loss),
        "gradient_norm": _finite(report.gradient_norm),
        "learning_rate": report.learning_rate,
        "loss_scale": report.loss_scale,
        "is_skipped": int(report.is_skipped),
        "elapsed_ns": report.elapsed_ns,
        "tokens_per_s": report.tokens_per_s,
        "mfu_fraction": _finite(report.mfu_fraction),
        **{f"exposed_{axis}_ns": waited_ns for axis, waited_ns in report.exposed_ns.items()},
        **({} if report.routing is None else _routing_columns(report.routing)),
    }


def _routing_columns(routing: RoutingReport) -> dict[str, float]:
    return {"balance_loss": _finite(routing.balance_loss), "dropped_fraction": routing.dropped_fraction}


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -1.0


def _skipped_steps(reports: Sequence[StepReport], rules: RuleSettings) -> list[Finding]:
    skipped = [report.step for report in reports if report.is_skipped]
    if len(skipped) <= rules.threshold(STEPS_SKIPPED, "skipped") * len(reports):
        return []
    return [
        STEPS_SKIPPED.finding(
            entity="training",
            expected="finite gradients in every step",
            actual=f"{len(skipped)} of {len(reports)} steps skipped, first step {skipped[0]}",
            confidence=Confidence.MEASURED,
            evidence=("table training, column is_skipped",),
        )
    ]
