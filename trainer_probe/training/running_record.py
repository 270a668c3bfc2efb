"""The record of a training run that goes on, so that a killed run leaves one: in place from its first step."""

from pathlib import Path
from typing import BinaryIO

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.growing_tables import append_row
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.outcome import describe_recipe, training_row
from fabrictune.trainer_probe.training.progress import StepReport

FILE = "training.jsonl"
NOTE = "incomplete: the run still goes on, or has been killed; there is a row for each step that had ended by then"


def make_incomplete_record(recipe: Recipe, *, started: float) -> RunRecord:
    """Return the record of a run that goes on, without its steps; `started` as in `make_record`."""
    described = describe_run(seed=recipe.seed, started=started)
    return RunRecord(
        kind="train run", run={**describe_recipe(recipe), "outcome": "incomplete", "notes": [NOTE], **described}
    )


class RunningRecord:
    """Rows of a record for the steps that have ended; the first puts the record in its place.

    A run does not end because its rows cannot be written: they end, and `failure` says why.
    """

    def __init__(self, record: RunRecord, directory: Path) -> None:
        self._record, self._directory = record, directory
        self._file: BinaryIO | None = None
        self.failure: str | None = None

    def on_step(self, report: StepReport) -> None:
        """Append a step."""
        if self.failure is not None:
            return
        try:
            if self._file is None:
                self._file = self._record.write_growing(self._directory, FILE)
            append_row(self._file, training_row(report))
        except (RecordError, OSError) as error:
            self.failure = f"{self._directory / FILE}: {error}"

    def close(self) -> None:
        """Close the file; the record stays until another takes its place."""
        if self._file is not None:
            self._file.close()
