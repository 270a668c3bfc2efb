"""A campaign in a folder: a line of JSON for each trial, so that it goes on where it was stopped."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.studies.planted_faults.real import BATCH, try_real
from benchmarks.studies.planted_faults.simulated import try_simulated
from benchmarks.studies.planted_faults.testbed import try_testbed
from benchmarks.studies.planted_faults.trials import Result, Trial

LINES, MISSES = "results.jsonl", "misses"


class Session:
    """The trials of one seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self._seed = folder, seed
        (folder / MISSES).mkdir(parents=True, exist_ok=True)

    def results(self) -> dict[Trial, Result]:
        """Return the results that are there."""
        path = self.folder / LINES
        lines = path.read_text().splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines if line.endswith("}")]  # the last may have been cut short
        results = [Result.from_json(entry["result"]) for entry in entries if entry["seed"] == self._seed]
        return {result.trial: result for result in results}

    def go_on(self, trials: Sequence[Trial], until_s: float) -> Iterator[Result]:
        """Do the trials that are not done yet, until a moment of the monotonic clock; yields each result."""
        done = self.results()
        left = [trial for trial in trials if trial not in done]
        for batch in _batches(left):
            if time.monotonic() > until_s:
                return
            with tempfile.TemporaryDirectory(prefix="planted-") as name:
                folder = Path(name)
                for result in self._try(batch, folder):
                    self._note(result, folder)
                    yield result

    def _try(self, batch: Sequence[Trial], folder: Path) -> Iterable[Result]:
        match batch[0].part:
            case "simulated":
                return [try_simulated(trial, self._seed, folder) for trial in batch]
            case "real":
                return try_real(batch, self._seed, folder)
            case "testbed":
                return try_testbed(batch, self._seed, folder)

    def _note(self, result: Result, folder: Path) -> None:
        """Append the result; what a miss of a real job left is kept, since no seed brings it back."""
        with (self.folder / LINES).open("a") as file:
            file.write(json.dumps({"seed": self._seed, "result": result.to_json()}) + "\n")
        trial = result.trial
        is_miss = bool(result.names) if result.truth is None else not result.is_located
        left = folder / trial.name
        if is_miss and left.is_dir():
            shutil.copytree(left, self.folder / MISSES / trial.name, dirs_exist_ok=True)


def _batches(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """Yield simulated trials one by one, others of one size together: they share a job's start, or a testbed."""
    batch: list[Trial] = []
    for trial in trials:
        is_alone = trial.part == "simulated"
        if batch and (is_alone or batch[0].part != trial.part or batch[0].size != trial.size or len(batch) == BATCH):
            yield batch
            batch = []
        batch.append(trial)
        if is_alone:
            yield batch
            batch = []
    if batch:
        yield batch
