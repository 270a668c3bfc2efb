"""The folder of a sweep: a record for each run, by the run's identity, and the record of the whole.

    runs/NAME/points/<identity>/   a run: values, seed, metrics
    runs/NAME/result/              the sweep: table, front, sensitivity
    runs/NAME/lock                 the mark of a sweep, held while one writes here

A run is there whole or not at all, on disk before it counts: so a sweep that was killed goes on where it stopped. The
text in `lock` marks the folder as a sweep's: no other folder is taken, no link is followed, and nothing is removed but
what a killed sweep left half written.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.output_files import locked
from fabrictune.foundation.output_folders import check_output_folder, remove_litter
from fabrictune.foundation.record_folders import SWEEP_LOCK, SWEEP_MARK, is_sweep
from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.points import Task

POINTS, RESULT = "points", "result"
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

    def remove_litter(self) -> None:
        """Remove what a killed sweep left half written."""
        for folder in (self._points, self.directory):
            with locked(folder):
                remove_litter(folder)


@contextmanager
def open_folder(directory: Path) -> Iterator[SweepFolder]:
    """Open a sweep's folder, for this process alone.

    Raises InputError where another sweep writes there, RecordError where something else is there or nothing can be
    written.
    """
    check_output_folder(directory, check=_check_sweep)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with locked(directory.parent):  # so that no record takes its place meanwhile
            _check_sweep(directory)
            directory.mkdir(exist_ok=True)
            lock = os.open(directory / SWEEP_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise RecordError(Mistake(where=str(directory), found=f"cannot be written ({error.strerror})")) from error
    try:
        _hold(lock, directory)
        folder = SweepFolder(directory)
        folder.remove_litter()
        yield folder
    finally:
        os.close(lock)


def _hold(lock: int, directory: Path) -> None:
    """Take the sweep's lock, mark the folder and make room for its runs; raises InputError, RecordError."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(lock, SWEEP_MARK, 0)
        (directory / POINTS).mkdir(exist_ok=True)
    except BlockingIOError:
        raise InputError(
            Mistake(where=str(directory), found="another sweep writes here", next_step="wait for it, or give --out")
        ) from None
    except OSError as error:
        raise RecordError(Mistake(where=str(directory), found=f"cannot be written ({error.strerror})")) from error


def _check_sweep(directory: Path) -> None:
    """Raise RecordError where a sweep must not write: anything but a sweep's folder, an empty one, or none."""
    if not os.path.lexists(directory):
        return
    if directory.is_symlink():
        found, next_step = "a link", "name the folder it leads to"
    elif not directory.is_dir():
        found, next_step = "not a folder", "name another with --out"
    elif not any(directory.iterdir()) or (is_sweep(directory) and _has_only_folders(directory)):
        return
    else:
        found, next_step = "not an empty folder, and not one of a sweep", "name another with --out"
    raise RecordError(Mistake(where=str(directory), found=found, next_step=next_step))


def _has_only_folders(directory: Path) -> bool:
    """Return whether the runs and the result, where they are there, are folders and no links."""
    places = [place for name in (POINTS, RESULT) if os.path.lexists(place := directory / name)]
    return all(stat.S_ISDIR(place.lstat().st_mode) for place in places)
