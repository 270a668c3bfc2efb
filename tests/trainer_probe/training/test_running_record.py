"""The record of a run that goes on or was killed: real processes, read by the commands that read records."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.training.running_record import RunningRecord, make_incomplete_record
from tests.patience import patience
from tests.trainer_probe.ablation.test_record import trial_step

pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]
ENDLESS = ("tiny", "--set", 'degrees={"layout": {"dp": 2}}', "--set", "num_steps=100000")
NUM_SEEN = 3  # steps


@contextmanager
def running(folder: Path, words: Sequence[str] = ENDLESS) -> Iterator[subprocess.Popen[str]]:
    """A run in a group of processes of its own, ended with all of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fabrictune", "train", "run", *words, "--out", "run"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def await_steps(process: subprocess.Popen[str]) -> list[list[str]]:
    """Return the cells of the first steps' lines, once they are printed."""
    assert process.stdout is not None
    printed: list[list[str]] = []
    for line in process.stdout:
        cells = line.split()
        if cells and cells[0] == str(len(printed)):
            printed.append(cells)
        if len(printed) == NUM_SEEN:
            return printed
    raise AssertionError("the run ended")


def processes_of(group: int) -> list[int]:
    """The group's processes other than its first, ranks last."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and int(folder.name) != group:
            found.append(int(folder.name))
    return sorted(found)


def check_record(folder: Path, printed: Sequence[Sequence[str]]) -> int:
    """Hold the record to the steps that were printed; returns how many steps it has."""
    record = RunRecord.read(folder / "run")
    assert (record.kind, record.run["outcome"]) == ("train run", "incomplete")
    assert record.run["command"].startswith("fabrictune train run tiny")
    table = record.tables["training"]
    num_steps = len(table["step"])
    assert table["step"].tolist() == list(range(num_steps))
    assert num_steps >= len(printed)
    for cells, loss in zip(printed, table["loss"].tolist(), strict=False):
        assert cells[1] == f"{loss:.4f}"
    assert (table["tokens_per_s"] > 0).all()
    assert (table["loss_scale"] == 1).all()
    return num_steps


def test_a_run_that_goes_on_has_a_record_that_grows(tmp_path: Path) -> None:
    """Every step that has been printed has its row; further steps come without another look at the process."""
    with running(tmp_path) as process:
        num_steps = check_record(tmp_path, await_steps(process))
        deadline = time.monotonic() + patience(60)
        while check_record(tmp_path, []) < num_steps + 2:
            assert time.monotonic() < deadline


@pytest.mark.parametrize("victim", ["all", "the starter", "a rank"])
def test_a_killed_run_leaves_a_record_that_says_so(tmp_path: Path, victim: str) -> None:
    """SIGKILL of the whole group, of the process that started the ranks, or of one rank, whose end the others survive.

    The report page shows its steps, and the note that it is incomplete.
    """
    with running(tmp_path) as process:
        printed = await_steps(process)
        if victim == "all":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid if victim == "the starter" else processes_of(process.pid)[-1], signal.SIGKILL)
        process.communicate(timeout=patience(60))
    check_record(tmp_path, printed)
    assert run(["report", "build", str(tmp_path / "run"), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "incomplete: the run still goes on, or has been killed" in page
    assert "Loss by step" in page


def test_a_run_goes_on_whose_rows_cannot_be_written(tmp_path: Path) -> None:
    """A folder of somebody's stays, and the run can say why there is no record while it runs."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("x")
    recipe = load_recipe(find_recipe("tiny"))
    growing = RunningRecord(make_incomplete_record(recipe, started=0.0), tmp_path / "run")
    for step in (0, 1):
        growing.on_step(trial_step(step, "all", 1.0).report)
    growing.close()
    place = tmp_path / "run"
    assert growing.failure == (
        f"{place / 'training.jsonl'}: {place}: not an empty folder, and no run record\n  next: name another"
    )
    assert [path.name for path in place.iterdir()] == ["mine.txt"]
