"""What a training run leaves, as a record."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.records import Confidence, Finding, RunRecord, Severity, describe_run
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.driver.reports import StepReport, training_table
from fabrictune.trainer_probe.recipes.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A run that has ended, or was stopped between two of its steps."""

    reports: tuple[StepReport, ...]
    trace: CommTrace  # of the last steps, all ranks
    was_stopped: bool
    data_state: dict[str, int]  # what it takes to go on with the next sample


def make_record(recipe: Recipe, outcome: Outcome, *, started: float) -> RunRecord:
    """Return a record of kind "train run"; `started` is what `time.perf_counter` said at the start.

    Its table `training` has step, loss and gradient_norm (-1 where not finite), learning_rate, is_skipped, elapsed_ns,
    tokens_per_s, mfu_fraction (-1 where no peak is known), and exposed_tp_ns, exposed_dp_ns, exposed_pp_ns averaged
    over ranks. The file `comm_trace.parquet` is what the ranks asked for in the last steps, a CommTrace.
    """
    return RunRecord(
        kind="train run",
        run={
            "name": recipe.name,
            "question": recipe.question,
            "configuration": recipe.settings(),
            "outcome": "interrupted" if outcome.was_stopped else "finished",
            "data_state": outcome.data_state,
            **describe_run(seed=recipe.seed, started=started),
        },
        tables={"training": training_table(outcome.reports)},
        findings=tuple(_skipped_steps(outcome.reports)),
        files={"comm_trace.parquet": as_parquet(outcome.trace)},
    )


def _skipped_steps(reports: Sequence[StepReport]) -> list[Finding]:
    skipped = [report.step for report in reports if report.is_skipped]
    if not skipped:
        return []
    return [
        Finding(
            id="train.steps-skipped",
            severity=Severity.WARNING,
            entity="training",
            expected="gradients that are finite",
            actual=f"{len(skipped)} of {len(reports)} steps left out, the first step {skipped[0]}",
            next_step="lower the learning rate, or use bfloat16 where float16 overflows",
            confidence=Confidence.MEASURED,
            evidence=("table training, column is_skipped",),
        )
    ]


def as_parquet(trace: CommTrace | JobTrace) -> bytes:
    """Return the bytes of the file that a trace is written as."""
    with tempfile.TemporaryDirectory(prefix="fabrictune-trace-") as name:
        path = Path(name, "trace.parquet")
        trace.write(path)
        return path.read_bytes()


def from_parquet(content: bytes) -> CommTrace:
    """Return the trace whose file has that content."""
    with tempfile.TemporaryDirectory(prefix="fabrictune-trace-") as name:
        path = Path(name, "trace.parquet")
        path.write_bytes(content)
        return CommTrace.read(path)
