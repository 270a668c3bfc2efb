"""The folder of a sweep: a record for each run, by the run's identity, and the record of the whole.

    runs/NAME/points/<identity>/   a run: values, seed, metrics
    runs/NAME/result/              the sweep: table, front, sensitivity
    runs/NAME/lock                 held while a sweep writes here

A run is there whole or not at all, on disk before it counts: so a sweep that was killed goes on where it stopped.
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.points import Task

POINTS, RESULT, LOCK = "points", "result", "lock"
GO_ON = "make room, then give the same command again: what is there is kept and not run twice"


class SweepFolder:
    """The runs a sweep has done; open one with `open_folder`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._points = directory / POINTS

    def find(self, task: Task) -> RunRecord | None:
        """Return the record of a run if it is there whole."""
        try:
            return self.read(task.id)
        except RecordError:
            return None

    def read(self, task_id: str) -> RunRecord:
        """Return the record of a run that was kept; raises RecordError."""
        return RunRecord.read(self._points / task_id)

    def keep(self, task: Task, record: RunRecord) -> None:
        """Write a run's record to disk; raises RecordError, with what to do, where there is no room."""
        self._write(self._points / task.id, record)

    def write_result(self, record: RunRecord) -> Path:
        """Write the record of the whole sweep; returns its folder. Raises RecordError."""
        return self._write(self.directory / RESULT, record)

    def _write(self, directory: Path, record: RunRecord) -> Path:
        try:
            return record.write(directory, durably=True)
        except RecordError as error:
            raise RecordError(*(replace(mistake, next_step=GO_ON) for mistake in error.mistakes)) from error

    def sweep_out(self) -> None:
        """Remove what a killed sweep left half written."""
        for scratch in self._points.glob(".*"):
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def open_folder(directory: Path) -> Iterator[SweepFolder]:
    """Open a sweep's folder, for this process alone; raises InputError where another sweep writes there."""
    try:
        (directory / POINTS).mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK).open("w")
    except OSError as error:
        raise RecordError(Mistake(where=str(directory), found=f"cannot be written ({error.strerror})")) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                Mistake(where=str(directory), found="another sweep writes here", next_step="wait for it, or give --out")
            ) from None
        folder = SweepFolder(directory)
        folder.sweep_out()
        yield folder
