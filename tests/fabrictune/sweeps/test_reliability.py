"""What a sweep has done stays done: through kills at any moment, a full disk, Ctrl-C, and workers of Ray that die."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.seeds import stream
from fabrictune.sweeps.executors import Take, Threads
from fabrictune.sweeps.points import Task
from tests.fabrictune.sweeps.conftest import SWEEP, tables

ROOT = Path(__file__).parents[3]
NUM_KILLS = 20
NUM_RUNS = 48
MESSAGES = "[50 KB, 60 KB, 70 KB, 80 KB, 90 KB, 100 KB, 110 KB, 120 KB, 130 KB, 140 KB, 150 KB, 160 KB]"

Write = Callable[..., Path]
Run = Callable[..., RunRecord]


def whole_runs(out: Path) -> int:
    """Return how many runs a sweep's folder holds."""
    return sum(1 for point in (out / "points").glob("[!.]*") if RunRecord.read(point).run["metrics"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_killed_twenty_times_it_comes_to_the_same_table(write: Write, run: Run, tmp_path: Path) -> None:
    """Each process is killed at a random moment of what a whole sweep takes; every run it left is whole.

    24 points of 2 seeds. A process that was not killed in time has ended the sweep; the next starts afresh, so that all
    20 kills hit one that is at work. Processes are forked with the law compiled, or most kills would hit the compiler.
    """
    path, out = write(SWEEP.replace("[50 KB, 100 KB, 200 KB]", MESSAGES)), tmp_path / "killed"
    executor, random = Threads(num_workers=2), stream(7, "kills")
    undisturbed = tables(run(path, "undisturbed", executor))

    def killed_after(patience_s: float) -> bool:
        process = multiprocessing.get_context("fork").Process(target=run, args=(path, "killed", executor))
        process.start()
        process.join(timeout=patience_s)
        process.kill()
        process.join()
        return process.exitcode == -signal.SIGKILL

    started = time.monotonic()
    run(path, "timed", executor)
    whole_s = time.monotonic() - started
    num_killed, found = 0, [0]
    while num_killed < NUM_KILLS:
        is_killed = killed_after(random.uniform(0, whole_s))
        num_killed += is_killed
        found.append(whole_runs(out) if out.exists() else 0)
        if not is_killed:
            out.rename(tmp_path / f"whole-{len(found)}")
    assert any(0 < number < NUM_RUNS for number in found)
    assert tables(run(path, "killed")) == undisturbed


def test_ctrl_c_gives_up_what_is_under_way_and_keeps_the_rest(write: Write, run: Run, tmp_path: Path) -> None:
    """The third run is told to stop, as the keyboard would: three are kept, and no more are run than the other nine."""

    class Stopped(Threads):
        def run(self, tasks: Sequence[Task], take: Take) -> None:
            taken: list[str] = []

            def take_three(task: Task, record: RunRecord) -> None:
                if len(taken) == 3:
                    raise KeyboardInterrupt
                taken.append(task.id)
                take(task, record)

            super().run(tasks, take_three)

    path = write(SWEEP + "probe: false\n")
    with pytest.raises(KeyboardInterrupt):
        run(path, "stopped", Stopped(num_workers=2))
    assert whole_runs(tmp_path / "stopped") == 3
    assert tables(run(path, "stopped")) == tables(run(path, "undisturbed"))


def test_a_full_disk_is_reported_and_the_sweep_goes_on(write: Write, tmp_path: Path) -> None:
    """A file system of 96 KB has room for a few of twelve runs; with more room the same command ends the sweep."""
    script = """
        mount -t tmpfs -o size=96k none "$1" || exit 77
        shift
        "$@"; echo "exit $?"
        mount -o remount,size=16m "$0"
        "$@"; echo "exit $?"
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    sweep: list[str | Path] = [
        sys.executable,
        "-m",
        "fabrictune",
        "sim",
        "sweep",
        write(),
        "--out",
        disk / "out",
        "--json",
    ]
    result = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", script, disk, disk, *sweep],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip(f"no file system of its own to be had here ({result.stderr.strip()})")
    full, whole = result.stdout.split("exit 2\n")
    assert "No space left on device" in json.loads(full)["error"]["mistakes"][0]["found"]
    assert "same command again" in json.loads(full)["error"]["mistakes"][0]["next_step"]
    assert len(json.loads(whole.removesuffix("exit 0\n"))["points"]) == 6


DEADLY_LAW = """
import os, signal
from pathlib import Path
PARAMETERS, STATE = (), ()
MARK = Path("{mark}")
if not MARK.exists():
    MARK.touch()
    os.kill(os.getpid(), signal.SIGKILL)


def on_start(params, flow, now_ps):
    return 0
"""


@pytest.mark.slow
def test_a_worker_of_ray_that_is_killed_loses_nothing(write: Write, run: Run, tmp_path: Path) -> None:
    """A real cluster of two workers; the law kills the first that loads it, and the table is that of threads."""
    pytest.importorskip("ray")
    mark = tmp_path / "killed"
    (tmp_path / "deadly.py").write_text(DEADLY_LAW.format(mark=mark))
    path = write(SWEEP + "change: {law: ./deadly.py}\n")
    options = ["--on", "ray", "--workers", "2", "--trust-code", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "fabrictune", "sim", "sweep", path, "--out", tmp_path / "ray", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert mark.exists()
    of_threads: Any = run(path, "threads", trust_code=True)
    assert tables(RunRecord.read(tmp_path / "ray" / "result")) == tables(of_threads)
